// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// ParseDriveSize reads the size that a disk must have. A size alone is that of a
// label, which a maker rounds: "3.84TB" allows every size that is 3.84 TB when it is
// rounded to as many digits, from 3,835,000,000,000 bytes up to, and without,
// 3,845,000,000,000. Of decimal units it also allows the capacity that the label
// stands for by IDEMA, since that of large disks rounds to another number: a disk of
// 30.72 TB has 30,725,971,992,576 bytes. A limit or a range, with >=, <= or =, is
// exact to the byte.
func ParseDriveSize(s string) (Limit[Bytes], error) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "<>=,") {
		l, err := ParseRange(s, ParseBytes)
		if err == nil && l.Op == Exactly {
			l.Text = "= " + l.Value.String()
		}
		return l, err
	}
	value, err := ParseBytes(s)
	if err != nil {
		return Limit[Bytes]{}, err
	}
	number, suffix, err := splitUnit(s)
	if err != nil {
		return Limit[Bytes]{}, err
	}
	i := slices.IndexFunc(units[Data], func(f factor) bool { return f.suffix == suffix })
	each := units[Data][i].num // bytes; no unit of data is a fraction of one
	size := new(big.Rat).Mul(number, big.NewRat(each, 1))
	half := new(big.Rat).SetFrac(big.NewInt(each), new(big.Int).Mul(big.NewInt(2), powerOfTen(countDecimals(s))))
	from, to := ceilInt(new(big.Rat).Sub(size, half)), ceilInt(new(big.Rat).Add(size, half))
	to.Sub(to, big.NewInt(1))
	if !to.IsInt64() {
		return Limit[Bytes]{}, fmt.Errorf("%q is more than this %s can be", s, Data)
	}
	l := Limit[Bytes]{Op: Printed, Value: value, Lower: Bytes(max(0, from.Int64())), Upper: Bytes(to.Int64()), Text: s}
	if c := DriveCapacity(value); slices.Contains([]string{"GB", "TB", "PB"}, suffix) && c > l.Upper {
		l.Upper = c
	}
	return l, nil
}

// DriveCapacity returns the bytes of a disk whose label says so many: IDEMA
// LBA1-03, 97,696,368 sectors of 512 bytes for the first 50 GB and 1,953,504 for each
// GB more. Below 50 GB nothing is agreed on, and it is what the label says.
func DriveCapacity(label Bytes) Bytes {
	const first, atFirst, perGB = 50e9, 97_696_368 * 512, 1_953_504 * 512
	if label < first || label > 1e18 {
		return label
	}
	more := new(big.Int).Mul(big.NewInt(int64(label-first)), big.NewInt(perGB))
	return Bytes(atFirst + more.Quo(more, big.NewInt(1e9)).Int64())
}

// countDecimals counts the digits behind the point of a quantity.
func countDecimals(s string) int {
	_, behind, _ := strings.Cut(s, ".")
	return len(behind) - len(strings.TrimLeft(behind, "0123456789"))
}

func powerOfTen(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// ceilInt rounds up to a whole number.
func ceilInt(r *big.Rat) *big.Int {
	down := new(big.Int).Neg(r.Num())
	down.Div(down, r.Denom()) // Euclidean: rounds down, since a denominator is positive
	return down.Neg(down)
}
