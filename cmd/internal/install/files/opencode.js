// Written by 'anamnesis install opencode'; 'anamnesis uninstall opencode' removes it.
// It reports the session's events to the recorder, adds its replies to the context, and
// omits from each request the messages of steps that a jump has discarded. If anything fails
// here, opencode continues.
import { spawn } from "node:child_process"

const HOOK = "@HOOK@"
const OWN = /^anamnesis_(timeline|jump_to_step|checkpoint|diff|recall|remember|show_operation)$/
const SECONDS = 2

// run sends one event to the hook and returns what it printed.
function run(event) {
  return new Promise((resolve) => {
    try {
      const child = spawn("sh", [HOOK, "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
      let out = ""
      const end = () => {
        clearTimeout(timer)
        resolve(out)
      }
      const timer = setTimeout(() => {
        out = ""
        child.kill()
        end()
      }, SECONDS * 1000)
      child.on("error", end)
      child.on("close", end)
      child.stdout.on("data", (data) => (out += data))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      resolve("")
    }
  })
}

function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

export const Anamnesis = async ({ directory }) => {
  const left = new Map() // by session: the calls of discarded steps
  const said = new Map() // by session: the last answer
  const waiting = new Map() // by session: a reply for which there was no place yet
  let queue = Promise.resolve() // events are sent one after the other

  const send = (sessionID, name, more) => {
    const told = queue.then(() => run({ session_id: sessionID, cwd: directory, hook_event_name: name, ...more }))
    queue = told.then(() => {})
    return told.then(parse)
  }
  // tell reports an event. put adds the reply to the context and reports whether it could.
  const tell = async (sessionID, name, more, put = () => false) => {
    const reply = (await send(sessionID, name, more)).hookSpecificOutput?.additionalContext
    const text = [waiting.get(sessionID), reply].filter(Boolean).join("\n\n")
    waiting.set(sessionID, text && !put(text) ? text : "")
    return Boolean(reply)
  }
  const cut = async (sessionID) => left.set(sessionID, new Set((await send(sessionID, "ContextCut")).left ?? []))
  const call = (input, args) => ({ tool_name: input.tool, tool_input: args, tool_use_id: input.callID })

  return {
    "chat.message": async (input, output) => {
      const texts = output.parts.filter((p) => p.type === "text" && !p.synthetic)
      const prompt = texts.map((p) => p.text).join("\n")
      const last = texts.at(-1)
      await tell(input.sessionID, "UserPromptSubmit", { prompt, model: input.model?.modelID, permission_mode: input.agent === "plan" ? "plan" : "default" }, (text) => {
        if (last) output.parts.push({ ...last, id: last.id + "a", text, synthetic: true })
        return Boolean(last)
      })
      await cut(input.sessionID)
    },
    "tool.execute.before": async (input, output) => {
      if (!OWN.test(input.tool)) await tell(input.sessionID, "PreToolUse", call(input, output.args))
    },
    "tool.execute.after": async (input, output) => {
      if (OWN.test(input.tool)) {
        if (input.tool.endsWith("jump_to_step")) await cut(input.sessionID)
        return
      }
      const exit = output.metadata?.exit
      const text = output.output ?? (output.content ?? []).map((c) => c.text ?? "").join("\n")
      const result =
        typeof exit !== "number" ? { tool_response: text } : exit === 0 ? { tool_response: { stdout: text } } : { error: "Exit code " + exit + "\n" + text }
      const name = "error" in result ? "PostToolUseFailure" : "PostToolUse"
      const news = await tell(input.sessionID, name, { ...call(input, input.args), ...result }, (text) => {
        if (typeof output.output !== "string") return false
        output.output += "\n\n" + text
        return true
      })
      if (news) await cut(input.sessionID) // it may be about a jump
    },
    event: async ({ event }) => {
      const part = event.properties?.part
      if (event.type === "message.part.updated" && part?.type === "text" && part.time?.end) said.set(part.sessionID, part.text)
      if (event.type === "message.part.updated" && part?.type === "tool" && part.state.status === "error" && !OWN.test(part.tool))
        await tell(part.sessionID, "PostToolUseFailure", { ...call(part, part.state.input), error: String(part.state.error) })
      if (event.type === "session.idle") {
        const id = event.properties.sessionID
        await tell(id, "Stop", { last_assistant_message: said.get(id) ?? "" })
      }
    },
    "experimental.chat.messages.transform": async (_, output) => {
      const gone = left.get(output.messages[0]?.info?.sessionID)
      if (!gone?.size) return
      const stays = output.messages.filter((m) => {
        const tools = m.parts.filter((p) => p.type === "tool")
        return m.info.role !== "assistant" || tools.length === 0 || !tools.every((p) => gone.has(p.callID))
      })
      // opencode reads this very array: another one in its place would be ignored.
      if (stays.length < output.messages.length) output.messages.splice(0, output.messages.length, ...stays)
    },
  }
}
