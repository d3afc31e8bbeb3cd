package retrieval

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

const (
	svdSeed       = 0x414e414d // fixed: the same cards give the same vectors
	svdOversample = 16
	svdIterations = 2
	jacobiSweeps  = 30
)

// sparse is a matrix in compressed rows.
type sparse struct {
	rows, cols int
	start      []int // by row; len rows+1
	at         []int32
	val        []float32
}

func (a *sparse) addRow(at []int32, val []float32) {
	if a.start == nil {
		a.start = []int{0}
	}
	a.at = append(a.at, at...)
	a.val = append(a.val, val...)
	a.start = append(a.start, len(a.at))
	a.rows++
}

func (a *sparse) transpose() *sparse {
	t := &sparse{rows: a.cols, cols: a.rows, start: make([]int, a.cols+1),
		at: make([]int32, len(a.at)), val: make([]float32, len(a.val))}
	for _, c := range a.at {
		t.start[c+1]++
	}
	for i := range a.cols {
		t.start[i+1] += t.start[i]
	}
	next := slices.Clone(t.start)
	for r := range a.rows {
		for i := a.start[r]; i < a.start[r+1]; i++ {
			c := a.at[i]
			t.at[next[c]], t.val[next[c]] = int32(r), a.val[i]
			next[c]++
		}
	}
	return t
}

// mul gives a·x, where x has a.cols rows of width l.
func (a *sparse) mul(ctx context.Context, x []float32, l int) ([]float32, error) {
	out := make([]float32, a.rows*l)
	err := parallel(ctx, a.rows, func(r int) {
		row := out[r*l : (r+1)*l]
		for i := a.start[r]; i < a.start[r+1]; i++ {
			c := int(a.at[i])
			axpy(a.val[i], x[c*l:(c+1)*l], row)
		}
	})
	return out, err
}

// truncatedSVD gives the projection of a's rows on its dims strongest right
// singular directions as basis (a.cols × rank) times rotation (rank × dims),
// by randomized subspace iteration (Halko, Martinsson and Tropp, 2011,
// algorithm 4.4). dims must be at most min(rows, cols); fewer come back when
// the matrix has a lower rank.
func truncatedSVD(ctx context.Context, a *sparse, dims int) (basis []float32, rank int, rotation []float32, outDims int, err error) {
	l := min(dims+svdOversample, a.rows, a.cols)
	t := a.transpose()
	rng := rand.New(rand.NewPCG(svdSeed, uint64(l)))
	omega := make([]float32, a.cols*l)
	for i := range omega {
		omega[i] = float32(rng.NormFloat64())
	}
	y, err := a.mul(ctx, omega, l)
	if err != nil {
		return nil, 0, nil, 0, err
	}
	if err := orthonormalize(ctx, y, a.rows, l); err != nil {
		return nil, 0, nil, 0, err
	}
	for range svdIterations {
		z, err := t.mul(ctx, y, l)
		if err != nil {
			return nil, 0, nil, 0, err
		}
		if y, err = a.mul(ctx, z, l); err != nil {
			return nil, 0, nil, 0, err
		}
		if err := orthonormalize(ctx, y, a.rows, l); err != nil {
			return nil, 0, nil, 0, err
		}
	}
	if err := orthonormalize(ctx, y, a.rows, l); err != nil { // twice is enough
		return nil, 0, nil, 0, err
	}
	if basis, err = t.mul(ctx, y, l); err != nil {
		return nil, 0, nil, 0, err
	}
	values, vectors := symmetricEigen(gram(basis, a.cols, l), l)
	for outDims < dims && values[outDims] > 1e-6*values[0] {
		outDims++
	}
	rotation = make([]float32, l*outDims)
	for j := range outDims {
		for i := range l {
			rotation[i*outDims+j] = float32(vectors[i*l+j] / math.Sqrt(values[j]))
		}
	}
	return basis, l, rotation, outDims, nil
}

// orthonormalize makes the l columns of y (n rows) orthonormal, by modified
// Gram-Schmidt. Dependent columns become zero. Each finished column is taken
// out of all later ones at once, on all processors; every column still meets
// the earlier ones in their order, so the result is the same on any number of
// them. On an error, which is ctx's, y is as it was.
func orthonormalize(ctx context.Context, y []float32, n, l int) error {
	cols := make([][]float32, l)
	lengths := make([]float64, l) // before anything was taken out
	for j := range cols {
		cols[j] = make([]float32, n)
		for i := range n {
			cols[j][i] = y[i*l+j]
		}
		lengths[j] = norm(cols[j])
	}
	for j, q := range cols {
		if left := norm(q); left <= 1e-5*lengths[j] || left == 0 {
			clear(q)
		}
		normalize(q)
		later := cols[j+1:]
		err := parallel(ctx, len(later), func(k int) { axpy(-dot(q, later[k]), q, later[k]) })
		if err != nil {
			return err
		}
	}
	for j, c := range cols {
		for i := range n {
			y[i*l+j] = c[i]
		}
	}
	return nil
}

// gram gives xᵀx for x with n rows of width l.
func gram(x []float32, n, l int) []float64 {
	g := make([]float64, l*l)
	for r := range n {
		row := x[r*l : (r+1)*l]
		for i, f := range row {
			if f == 0 {
				continue
			}
			out := g[i*l : i*l+l]
			for j := i; j < l; j++ {
				out[j] += float64(f) * float64(row[j])
			}
		}
	}
	for i := range l {
		for j := range i {
			g[i*l+j] = g[j*l+i]
		}
	}
	return g
}

// symmetricEigen gives eigenvalues, largest first, and eigenvectors as
// columns, by cyclic Jacobi rotations. It overwrites m.
func symmetricEigen(m []float64, n int) (values, vectors []float64) {
	v := make([]float64, n*n) // rows are eigenvectors while rotating
	for i := range n {
		v[i*n+i] = 1
	}
	for range jacobiSweeps {
		var off, diag float64
		for i := range n {
			diag += m[i*n+i] * m[i*n+i]
			for j := i + 1; j < n; j++ {
				off += m[i*n+j] * m[i*n+j]
			}
		}
		if off <= 1e-18*diag {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(m, v, n, p, q)
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(m[b*n+b], m[a*n+a]), cmp.Compare(a, b))
	})
	values, vectors = make([]float64, n), make([]float64, n*n)
	for j, k := range order {
		values[j] = max(0, m[k*n+k])
		for i := range n {
			vectors[i*n+j] = v[k*n+i]
		}
	}
	return values, vectors
}

// rotate makes m[p][q] zero.
func rotate(m, v []float64, n, p, q int) {
	apq := m[p*n+q]
	if apq == 0 {
		return
	}
	theta := (m[q*n+q] - m[p*n+p]) / (2 * apq)
	t := 1 / (math.Abs(theta) + math.Sqrt(theta*theta+1))
	if theta < 0 {
		t = -t
	}
	c := 1 / math.Sqrt(t*t+1)
	s := t * c
	rp, rq := m[p*n:p*n+n], m[q*n:q*n+n]
	for k := range n {
		rp[k], rq[k] = c*rp[k]-s*rq[k], s*rp[k]+c*rq[k]
	}
	for k := range n {
		a, b := m[k*n+p], m[k*n+q]
		m[k*n+p], m[k*n+q] = c*a-s*b, s*a+c*b
	}
	vp, vq := v[p*n:p*n+n], v[q*n:q*n+n]
	for k := range n {
		vp[k], vq[k] = c*vp[k]-s*vq[k], s*vp[k]+c*vq[k]
	}
}

// axpy adds f·x to y.
func axpy(f float32, x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += f * v
	}
}

func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var a, b, c, d float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a += x[i] * y[i]
		b += x[i+1] * y[i+1]
		c += x[i+2] * y[i+2]
		d += x[i+3] * y[i+3]
	}
	for ; i < len(x); i++ {
		a += x[i] * y[i]
	}
	return a + b + c + d
}

// parallel calls do(0) … do(n-1) on all processors and waits. The calls must
// be independent of each other; ctx is looked at between them.
func parallel(ctx context.Context, n int, do func(i int)) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w * n / workers; i < (w+1)*n/workers; i++ {
				if i%64 == 0 && ctx.Err() != nil {
					return
				}
				do(i)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
