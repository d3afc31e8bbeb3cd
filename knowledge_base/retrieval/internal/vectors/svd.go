package vectors

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"
)

const (
	svdSeed       = 0x414e414d // fixed: the same cards give the same vectors
	svdOversample = 16
	svdIterations = 2
)

var errNoEigen = errors.New("the eigenvalues of the cards' words were not found")

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

// mul returns a·x, where x has a.cols rows of width l.
func (a *sparse) mul(ctx context.Context, x []float32, l int) ([]float32, error) {
	out := make([]float32, a.rows*l)
	err := Parallel(ctx, a.rows, func(r int) {
		row := out[r*l : (r+1)*l]
		for i := a.start[r]; i < a.start[r+1]; i++ {
			c := int(a.at[i])
			axpy(a.val[i], x[c*l:(c+1)*l], row)
		}
	})
	return out, err
}

// truncatedSVD returns the projection of a's rows on its dims strongest right
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
	values, vectors, err := symmetricEigen(gram(basis, a.cols, l))
	if err != nil {
		return nil, 0, nil, 0, err
	}
	for outDims < dims && values[outDims] > 1e-6*values[0] {
		outDims++
	}
	rotation = make([]float32, l*outDims)
	for j := range outDims {
		for i := range l {
			rotation[i*outDims+j] = float32(vectors.At(i, j) / math.Sqrt(values[j]))
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
		err := Parallel(ctx, len(later), func(k int) { axpy(-dot(q, later[k]), q, later[k]) })
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

// gramRows is how many rows of a matrix are made float64 at once.
const gramRows = 512

// gram returns xᵀx for x with n rows of width l.
func gram(x []float32, n, l int) *mat.SymDense {
	g, block := mat.NewSymDense(l, nil), make([]float64, gramRows*l)
	for r := 0; r < n; r += gramRows {
		rows := min(gramRows, n-r)
		for i, f := range x[r*l : (r+rows)*l] {
			block[i] = float64(f)
		}
		g.SymRankK(g, 1, mat.NewDense(rows, l, block[:rows*l]).T())
	}
	return g
}

// symmetricEigen returns the eigenvalues of m, largest first and none below zero, and the
// eigenvectors as columns in the same order.
func symmetricEigen(m *mat.SymDense) ([]float64, *mat.Dense, error) {
	var e mat.EigenSym
	if !e.Factorize(m, true) {
		return nil, nil, errNoEigen
	}
	ascending := e.Values(nil)
	var vectors mat.Dense
	e.VectorsTo(&vectors)
	n := len(ascending)
	values, sorted := make([]float64, n), mat.NewDense(n, n, nil)
	for j := range n {
		values[j] = max(0, ascending[n-1-j])
		sorted.SetCol(j, mat.Col(nil, n-1-j, &vectors))
	}
	return values, sorted, nil
}

// axpy adds f·x to y.
func axpy(f float32, x, y []float32) { blas32.Axpy(f, vector(x), vector(y)) }

func dot(x, y []float32) float32 { return blas32.Dot(vector(x), vector(y)) }

func vector(x []float32) blas32.Vector { return blas32.Vector{N: len(x), Inc: 1, Data: x} }

// Parallel calls do(0) … do(n-1) on all processors and waits. The calls must
// be independent of each other; ctx is looked at between them.
func Parallel(ctx context.Context, n int, do func(i int)) error {
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
