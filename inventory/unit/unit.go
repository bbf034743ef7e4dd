// SPDX-License-Identifier: Apache-2.0

// Package unit holds the physical quantities of the site language as types, so
// that a watt is never a byte: "10.2kW", "400Gbps" (bits), "2850GB/s" (bytes),
// "3m", "30min", "2TiB", "92%", "415V", "63A". Parsing is exact (decimal, not
// binary), refuses negative numbers and says which units are possible. Values
// are plain numbers, comparable and safe to share. It is a leaf.
package unit

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Watts is electrical power, in watts.
type Watts float64

// Volts is electrical tension, in volts.
type Volts float64

// Amps is electrical current, in amperes.
type Amps float64

// Length is a distance, in metres.
type Length float64

// Mass is a weight, in kilograms.
type Mass float64

// Percent is a share: 92% is Percent(92).
type Percent float64

// Bytes is an amount of data, in bytes: "GB" counts in thousands, "GiB" in 1024s.
type Bytes int64

// BitRate is a speed on a wire, in bits per second.
type BitRate int64

// ByteRate is a throughput, in bytes per second.
type ByteRate int64

// Duration is a length of time.
type Duration = time.Duration

// Dimension says what a quantity measures.
type Dimension uint8

// The dimensions that the language knows. None is a bare number.
const (
	None Dimension = iota
	Power
	Tension
	Current
	Distance
	Weight
	Share
	Data
	LineRate
	Throughput
	Time
)

var dimensionNames = [...]string{"number", "power", "voltage", "current", "length", "weight", "percentage", "amount of data", "line rate in bits", "throughput in bytes", "duration"}

// String returns the dimension in words.
func (d Dimension) String() string {
	if int(d) < len(dimensionNames) {
		return dimensionNames[d]
	}
	return fmt.Sprintf("dimension(%d)", uint8(d))
}

// factor is one spelling of a unit: num/den of the base unit of its dimension.
type factor struct {
	suffix   string
	num, den int64
}

// units lists the spellings of each dimension, the base unit's own among them;
// the order is that of messages and, downwards, of canonical printing.
var units = map[Dimension][]factor{
	Power:    {{"W", 1, 1}, {"kW", 1e3, 1}, {"MW", 1e6, 1}},
	Tension:  {{"V", 1, 1}, {"kV", 1e3, 1}},
	Current:  {{"mA", 1, 1e3}, {"A", 1, 1}},
	Distance: {{"mm", 1, 1e3}, {"cm", 1, 100}, {"m", 1, 1}, {"km", 1e3, 1}},
	Weight:   {{"g", 1, 1e3}, {"kg", 1, 1}, {"t", 1e3, 1}},
	Share:    {{"%", 1, 1}},
	Data: {{"B", 1, 1}, {"KB", 1e3, 1}, {"kB", 1e3, 1}, {"KiB", 1 << 10, 1}, {"MB", 1e6, 1}, {"MiB", 1 << 20, 1}, {"GB", 1e9, 1}, {"GiB", 1 << 30, 1},
		{"TB", 1e12, 1}, {"TiB", 1 << 40, 1}, {"PB", 1e15, 1}, {"PiB", 1 << 50, 1}},
	LineRate:   {{"bps", 1, 1}, {"kbps", 1e3, 1}, {"Mbps", 1e6, 1}, {"Gbps", 1e9, 1}, {"Tbps", 1e12, 1}},
	Throughput: {{"B/s", 1, 1}, {"kB/s", 1e3, 1}, {"KiB/s", 1 << 10, 1}, {"MB/s", 1e6, 1}, {"MiB/s", 1 << 20, 1}, {"GB/s", 1e9, 1}, {"GiB/s", 1 << 30, 1}, {"TB/s", 1e12, 1}, {"TiB/s", 1 << 40, 1}},
	Time: {{"ns", 1, 1}, {"us", 1e3, 1}, {"ms", 1e6, 1}, {"s", 1e9, 1}, {"min", 60e9, 1}, {"h", 3600e9, 1},
		{"d", 24 * 3600e9, 1}},
}

// Quantity is a number with its dimension, in the base unit (watts, volts,
// amperes, metres, kilograms, per cent, bytes, bits per second, bytes per
// second, nanoseconds).
type Quantity struct {
	Value     float64
	Dimension Dimension
}

// maxDigits bounds the text of a number; no quantity of a site needs more.
const maxDigits = 30

// ParseAny reads a quantity of whatever dimension its unit says; a number
// without a unit has dimension None.
func ParseAny(s string) (Quantity, error) {
	num, suffix, err := splitUnit(s)
	if err != nil {
		return Quantity{}, err
	}
	if suffix == "" {
		v, _ := num.Float64()
		return Quantity{Value: v}, nil
	}
	for d := Power; d <= Time; d++ {
		for _, f := range units[d] {
			if f.suffix == suffix {
				v, _ := num.Mul(num, big.NewRat(f.num, f.den)).Float64()
				return Quantity{Value: v, Dimension: d}, nil
			}
		}
	}
	return Quantity{}, fmt.Errorf("%q has no unit that is known", s)
}

// parseQuantity reads a quantity of dimension d as an exact number of base units.
func parseQuantity(s string, d Dimension) (*big.Rat, error) {
	num, suffix, err := splitUnit(s)
	if err != nil {
		return nil, fmt.Errorf("%w; %s such as %q is wanted", err, withArticle(d), sampleOf(d))
	}
	for _, f := range units[d] {
		if f.suffix == suffix {
			return num.Mul(num, big.NewRat(f.num, f.den)), nil
		}
	}
	if suffix == "" {
		return nil, fmt.Errorf("%q has no unit: %s is in %s", s, withArticle(d), unitNames(d))
	}
	hint := ""
	for _, f := range units[d] {
		if strings.EqualFold(f.suffix, suffix) {
			hint = fmt.Sprintf(" Did you mean %q?", strings.TrimSuffix(s, suffix)+f.suffix)
			break
		}
	}
	return nil, fmt.Errorf("%q is no %s: the unit is one of %s.%s", s, d, unitNames(d), hint)
}

// splitUnit cuts s into its number and its unit. One space between is allowed.
func splitUnit(s string) (*big.Rat, string, error) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	if i == 0 && s != "" && strings.ContainsRune("<>=", rune(s[0])) {
		return nil, "", fmt.Errorf("%q is a limit, and a single value is wanted here, without <, > and =", clipText(s))
	}
	digits, suffix := s[:i], strings.TrimPrefix(s[i:], " ")
	if digits == "" || len(digits) > maxDigits || digits[0] == '.' || digits[len(digits)-1] == '.' || strings.Count(digits, ".") > 1 {
		return nil, "", fmt.Errorf("%q does not start with a number", clipText(s))
	}
	num, ok := new(big.Rat).SetString(digits)
	if !ok {
		return nil, "", fmt.Errorf("%q does not start with a number", clipText(s))
	}
	return num, suffix, nil
}

// clipText shortens text for a message.
func clipText(s string) string {
	if len(s) > 2*maxDigits {
		return s[:2*maxDigits] + "..."
	}
	return s
}

// withArticle returns the dimension with "a" or "an" before it.
func withArticle(d Dimension) string {
	if name := d.String(); strings.HasPrefix(name, "a") {
		return "an " + name
	}
	return "a " + d.String()
}

func unitNames(d Dimension) string {
	out := make([]string, 0, len(units[d]))
	for _, f := range units[d] {
		out = append(out, f.suffix)
	}
	return strings.Join(out, ", ")
}

func sampleOf(d Dimension) string {
	list := units[d]
	return "3" + list[len(list)/2].suffix
}

// parseReal reads a quantity into a float type.
func parseReal[T ~float64](s string, d Dimension) (T, error) {
	r, err := parseQuantity(s, d)
	if err != nil {
		return 0, err
	}
	v, _ := r.Float64()
	return T(v), nil
}

// parseWhole reads a quantity into an integer type, rounded down to base units.
func parseWhole[T ~int64](s string, d Dimension) (T, error) {
	r, err := parseQuantity(s, d)
	if err != nil {
		return 0, err
	}
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if !n.IsInt64() {
		return 0, fmt.Errorf("%q is more than this %s can be", s, d)
	}
	return T(n.Int64()), nil
}

// ParseWatts reads power such as "10.2kW" or "700W".
func ParseWatts(s string) (Watts, error) { return parseReal[Watts](s, Power) }

// ParseVolts reads a voltage such as "415V".
func ParseVolts(s string) (Volts, error) { return parseReal[Volts](s, Tension) }

// ParseAmps reads a current such as "63A".
func ParseAmps(s string) (Amps, error) { return parseReal[Amps](s, Current) }

// ParseLength reads a length such as "600mm" or "3m".
func ParseLength(s string) (Length, error) { return parseReal[Length](s, Distance) }

// ParseMass reads a weight such as "90kg".
func ParseMass(s string) (Mass, error) { return parseReal[Mass](s, Weight) }

// ParsePercent reads a share such as "92%"; more than 100% is allowed here.
func ParsePercent(s string) (Percent, error) { return parseReal[Percent](s, Share) }

// ParseBytes reads an amount of data such as "800GB" or "2TiB".
func ParseBytes(s string) (Bytes, error) { return parseWhole[Bytes](s, Data) }

// ParseBitRate reads a line rate such as "400Gbps".
func ParseBitRate(s string) (BitRate, error) { return parseWhole[BitRate](s, LineRate) }

// ParseByteRate reads a throughput such as "2850GB/s".
func ParseByteRate(s string) (ByteRate, error) { return parseWhole[ByteRate](s, Throughput) }

// ParseDuration reads a duration such as "30min", "45s" or "2h".
func ParseDuration(s string) (Duration, error) { return parseWhole[Duration](s, Time) }

// formatQuantity writes v base units in the largest unit of d that leaves it at least 1
// and short; binary units are chosen only when they divide v.
func formatQuantity(v float64, d Dimension) string {
	best := ""
	for _, f := range slices.Backward(units[d]) {
		n := v * float64(f.den) / float64(f.num)
		if n < 1 && v != 0 {
			continue
		}
		text := strconv.FormatFloat(n, 'f', -1, 64) + f.suffix
		if best == "" || len(text) < len(best) {
			best = text
		}
	}
	if best == "" || v == 0 {
		best = strconv.FormatFloat(v, 'f', -1, 64) + baseUnit(d)
	}
	return best
}

func baseUnit(d Dimension) string {
	for _, f := range units[d] {
		if f.num == 1 && f.den == 1 {
			return f.suffix
		}
	}
	return ""
}
