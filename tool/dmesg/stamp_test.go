// SPDX-License-Identifier: Apache-2.0

package dmesg

import "testing"

// FuzzCutStamp: a line that is cut by hand is cut as the expressions cut it.
func FuzzCutStamp(f *testing.F) {
	for _, line := range []string{
		"[    1.500000] a", "[1.5]", "[1.5]\ta", "[ 1.]a", "[1.5", "[Sun Feb 23 16:24:18 2025] a",
		"Feb  3 16:24:18 n1 kernel: a", "Feb 23 16:24:18 n1 kernel:", "Feb 23 16:24:18 n1 kernel: [ 12.5] a", "Feb 23 16:24:18 n1 kernel: [12.5]", "Feb 23 16:24:18 n1 kernel:\t[12.5]a",
		"Feb 23 16:24:18  kernel: a", "Feb 23 16:24:18 n1 sshd[1]: a", "feb 23 16:24:18 n1\tkernel: a", "Feb 23 16:24:18 kernel: kernel: a",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		time, rest, ok := cutStamp(line)
		if !ok {
			return
		}
		for _, s := range stamps {
			m := s.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			if m[1] != time || line[len(m[0]):] != rest {
				t.Errorf("%q: got %q %q, the expressions say %q", line, time, rest, m)
			}
			return
		}
		t.Errorf("%q: got %q, the expressions say nothing", line, time)
	})
}
