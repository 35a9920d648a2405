package traffic

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// zipfHead is how many of the most frequent ranks are drawn from a table.
const zipfHead = 1 << 14

// zipf draws ranks from 0 to n-1, rank k with a probability in proportion to (k+1)^-s. The head, which most draws
// hit, is an alias table (Walker 1977; Vose 1991): a multiplication and one look-up. In the tail neighbours differ so
// little that the continuous distribution is inverted instead.
type zipf struct {
	n        int
	exponent float64
	tail     uint64 // a 64-bit draw below it falls into the tail
	keep     []uint32
	alias    []uint32
	low, top float64 // of the tail's integral
}

func newZipf(n int, s float64) *zipf {
	head := min(n, zipfHead)
	z := &zipf{n: n, exponent: s, keep: make([]uint32, head), alias: make([]uint32, head)}
	weights, sum := make([]float64, head), 0.0
	for k := range weights {
		weights[k] = math.Pow(float64(k+1), -s)
		sum += weights[k]
	}
	if n > head {
		// ∫ x^-s dx from head+½ to n+½ stands for the sum over head+1 … n.
		z.low, z.top = z.integral(float64(head)+0.5), z.integral(float64(n)+0.5)
		z.tail = uint64((z.top - z.low) / (sum + z.top - z.low) * 0x1p64)
	}
	z.fillAlias(weights, sum)
	return z
}

func (z *zipf) integral(x float64) float64 { return math.Pow(x, 1-z.exponent) / (1 - z.exponent) }

// fillAlias makes every column of the table hold its own rank with a probability of keep/2^32, else its alias.
func (z *zipf) fillAlias(weights []float64, sum float64) {
	var small, large []uint32
	for k := range weights {
		weights[k] *= float64(len(weights)) / sum
		if weights[k] < 1 {
			small = append(small, uint32(k))
		} else {
			large = append(large, uint32(k))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		z.keep[s], z.alias[s] = uint32(weights[s]*math.MaxUint32), l
		if weights[l] -= 1 - weights[s]; weights[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, k := range append(small, large...) { // 1 but for rounding
		z.keep[k], z.alias[k] = math.MaxUint32, k
	}
}

func (z *zipf) draw(random *rand.PCG) uint64 {
	if z.tail > 0 && random.Uint64() < z.tail {
		u := float64(random.Uint64()>>11) * 0x1p-53
		x := math.Pow((z.low+u*(z.top-z.low))*(1-z.exponent), 1/(1-z.exponent))
		return min(max(uint64(x+0.5), uint64(len(z.keep)+1)), uint64(z.n)) - 1
	}
	column, coin := bits.Mul64(random.Uint64(), uint64(len(z.keep)))
	if uint32(coin>>32) <= z.keep[column] {
		return column
	}
	return uint64(z.alias[column])
}

// permutation maps 0 … n-1 onto itself, so that neighbours part: x·factor mod n.
type permutation struct{ n, factor uint64 }

func newPermutation(n int) permutation {
	factor := uint64(float64(n)*0.6180339887498949) | 1
	for gcd(factor, uint64(n)) != 1 {
		factor += 2
	}
	return permutation{uint64(n), factor}
}

func (p permutation) of(x uint64) uint64 { return x * p.factor % p.n }

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// below draws from 0 to n-1. For the n in use the bias is below 2^-32.
func below(random *rand.PCG, n uint64) uint64 {
	high, _ := bits.Mul64(random.Uint64(), n)
	return high
}

// mix is the finalizer of SplitMix64: traits that look random and are always the same.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// timeBytes is the length of 2006-01-02T15:04:05.000Z.
const timeBytes = 24

// timeText spells times in RFC 3339 with milliseconds. It remembers the day, which seldom changes.
type timeText struct {
	day  int64
	text [timeBytes]byte
}

const dayMS = 86_400_000

func (t *timeText) append(dst []byte, ms int64) []byte {
	day := ms / dayMS
	if day != t.day || t.text[0] == 0 {
		t.day = day
		copy(t.text[:], time.UnixMilli(ms).UTC().Format("2006-01-02T00:00:00.000Z"))
	}
	rest := uint32(ms - day*dayMS)
	put2(t.text[11:], rest/3_600_000)
	put2(t.text[14:], rest/60_000%60)
	put2(t.text[17:], rest/1000%60)
	put2(t.text[20:], rest%1000/10)
	t.text[22] = byte('0' + rest%10)
	return append(dst, t.text[:]...)
}

func put2(dst []byte, n uint32) {
	dst[0], dst[1] = byte('0'+n/10), byte('0'+n%10)
}
