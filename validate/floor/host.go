// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"fmt"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// channels is how many channels of memory a socket has, by the CPU's model.
var channels = []struct {
	model  *lazyregexp.Regexp
	count  int
	source string
}{
	{lazyregexp.New(`EPYC 9[0-9A-Z]{3}`), 12, "AMD's data sheets of EPYC 9004 and 9005"},
	{lazyregexp.New(`EPYC 8[0-9A-Z]{3}`), 6, "AMD's data sheet of EPYC 8004"},
	{lazyregexp.New(`EPYC 7[0-9A-Z]{3}`), 8, "AMD's data sheets of EPYC 7001 to 7003"},
	{lazyregexp.New(`Xeon\S* 69[0-9]{2}`), 12, "Intel's product pages of Xeon 6900"},
	{lazyregexp.New(`Xeon\S* 67[0-9]{2}`), 8, "Intel's product pages of Xeon 6700"},
	{lazyregexp.New(`Xeon\S* (Platinum|Gold|Silver) [4-8][3-5][0-9]{2}([^H]|$)`), 8, "Intel's product pages of the third to the fifth generation"},
	{lazyregexp.New(`Xeon\S* (Platinum|Gold|Silver) [4-8][12][0-9]{2}`), 6, "Intel's product pages of the first and the second generation"},
}

// memoryShare is the least share of what its modules could carry that a good host reaches in a
// triad, in per cent. azurehpc-health-checks asks 665 GB/s of an HBv4, which is 72 % of its
// 921.6 GB/s, of a program that writes past the caches; code that does not reads each line before
// it writes it, and a triad of 24 bytes moves 32: three quarters of that is 54 %. What is left
// of it is belief.
const memoryShare = 40

// busBytes are those of a channel: 64 bits.
const busBytes = 8

// OfMemory returns the least that good memory of a host gives in a triad over all its cores,
// bytes a second, and where the figure is from; 0 where the model of the CPUs is not
// known, or the speed of a module. speed is that of the slowest module, MT/s.
func OfMemory(cpu string, sockets, modules, speed int) (least float64, source string) {
	for _, c := range channels {
		if !c.model.MatchString(cpu) || speed <= 0 || modules <= 0 || sockets <= 0 {
			continue
		}
		carry := min(modules, c.count*sockets)
		return memoryShare / 100.0 * float64(carry) * float64(speed) * 1e6 * busBytes,
			fmt.Sprintf("%d%% of what %d channels at %d MT/s carry; %s", memoryShare, carry, speed, c.source)
	}
	return 0, ""
}
