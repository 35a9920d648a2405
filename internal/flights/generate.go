package flights

import (
	"math"
	"math/rand/v2"
)

// The stand-in: as many airports and days as the real file has, hubs that take most of the traffic, few flights at night and
// fewer on Saturdays.
const (
	generatedSeed     = 20010101
	generatedStart    = 978_307_200_000 // 2001-01-01T00:00Z, a Monday
	generatedDays     = 181
	generatedAirports = 230
	minuteMillis      = 60_000
	minutesPerDay     = 24 * 60
	hubSkew           = 1.2 // weight of the n-th airport: 1/n^hubSkew
)

// generate returns count flights, the same ones every time.
func generate(count int) *Table {
	rng := rand.New(rand.NewPCG(generatedSeed, 0))
	t := &Table{Flights: make([]Flight, count), Airports: make([]string, generatedAirports)}
	for i := range t.Airports {
		t.Airports[i] = string([]byte{'A' + byte(i/26/26), 'A' + byte(i/26%26), 'A' + byte(i%26)})
	}
	minutes := newWeighted(weekMinutes())
	hubs := newWeighted(hubWeights())
	for i := range t.Flights {
		week := rng.IntN((generatedDays + 6) / 7)
		minute := int64(week)*7*minutesPerDay + int64(minutes.pick(rng))
		from, to := hubs.pick(rng), hubs.pick(rng)
		if from == to {
			to = (to + 1) % generatedAirports
		}
		t.Flights[i] = Flight{
			Millis:      generatedStart + minute*minuteMillis,
			Delay:       int32(rng.NormFloat64()*20 + 5),
			Distance:    int32(100 + (from*37+to*53)%2500),
			Source:      uint16(from),
			Destination: uint16(to),
		}
	}
	return t
}

// weekMinutes weighs the minutes of a week that begins on a Monday.
func weekMinutes() []float64 {
	const saturday = 5
	weights := make([]float64, 7*minutesPerDay)
	for m := range weights {
		ofDay := float64(m%minutesPerDay) / minutesPerDay
		weights[m] = math.Max(0.02, 1-math.Cos(2*math.Pi*ofDay)) // busiest at noon
		if m/minutesPerDay == saturday {
			weights[m] *= 0.8
		}
	}
	return weights
}

func hubWeights() []float64 {
	weights := make([]float64, generatedAirports)
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -hubSkew)
	}
	return weights
}

// weighted picks indices in proportion to their weights.
type weighted struct{ cumulated []float64 }

func newWeighted(weights []float64) weighted {
	sum := 0.0
	w := weighted{make([]float64, len(weights))}
	for i, weight := range weights {
		sum += weight
		w.cumulated[i] = sum
	}
	return w
}

func (w weighted) pick(rng *rand.Rand) int {
	at := rng.Float64() * w.cumulated[len(w.cumulated)-1]
	low, high := 0, len(w.cumulated)-1
	for low < high {
		middle := (low + high) / 2
		if w.cumulated[middle] < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
