// SPDX-License-Identifier: Apache-2.0

package nccllog

import "testing"

// FuzzInfo: a line that Info takes apart is what the expressions take it for.
func FuzzInfo(f *testing.F) {
	for _, line := range []string{"n1:11:12 [0] NCCL INFO Using network IB", "n1:11:12 [] NCCL INFO x", "n-1.a_b:1:2 [7] NCCL INFO  NCCL WARN y", "a:1:2 [0] NCCL INFO ", "1 -1n1:11:12 [0] NCCL INFO x", ":1:2 [0] NCCL INFO x", "a:1:2 [0] net.cc:1 NCCL INFO x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		host, text, ok := ParseInfo(line)
		if !ok {
			return
		}
		if m := entry.FindStringSubmatch(line); m == nil || m[1] != host || m[2] != "INFO" || m[3] != text {
			t.Errorf("%q: got %q %q, the expression says %q", line, host, text, m)
		}
	})
}
