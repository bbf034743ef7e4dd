// SPDX-License-Identifier: Apache-2.0

package bought

import "testing"

func TestSameGPU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, is    string
		same, known bool
	}{
		{"H100 SXM5 80GB", "NVIDIA H100 80GB HBM3", true, true},
		{"H100", "NVIDIA H200", false, true},
		{"A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", false, true},
		{"A100", "NVIDIA A100-SXM4-80GB", true, true},
		{"B200", "NVIDIA GB200", false, true},
		{"MI300X", "AMD Instinct MI300X OAM", true, true},
		{"GH200 96GB", "NVIDIA GH200 480GB", true, true},
		{"L40S", "NVIDIA L40", false, true},
		{"the fast one", "NVIDIA H100 80GB HBM3", false, false},
		{"PCI 10de:2330", "PCI 10de:2330", true, true},
	} {
		if same, known := SameGPU(c.want, c.is); same != c.same || known != c.known {
			t.Errorf("%s and %s: %v, %v", c.want, c.is, same, known)
		}
	}
}

// TestSameCPU: names as /proc/cpuinfo of real machines has them, beside those of orders.
func TestSameCPU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, is    string
		same, known bool
	}{
		{"Xeon Platinum 8480C", "Intel(R) Xeon(R) Platinum 8480C", true, true},
		{"Xeon 8480C", "Intel(R) Xeon(R) Platinum 8480C", true, true},
		{"Xeon Platinum 8480+", "Intel(R) Xeon(R) Platinum 8480+", true, true},
		{"Xeon Platinum 8480C", "Intel(R) Xeon(R) Platinum 8480+", false, true},
		{"Intel Xeon Gold 6548N", "INTEL(R) XEON(R) GOLD 6548N", true, true},
		{"2x EPYC 9654 96-core", "AMD EPYC 9654 96-Core Processor", true, true},
		{"AMD EPYC 9554 64-Core Processor", "AMD EPYC 9654 96-Core Processor", false, true},
		{"EPYC 9654", "AMD EPYC 9654P 96-Core Processor", false, true},
		{"Xeon E5-2680 v4", "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", true, true},
		{"Xeon E5-2680 v4", "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz", false, true},
		{"Intel(R) Xeon(R) Processor", "Intel(R) Xeon(R) Processor", true, true},
		{"4th Gen Xeon", "Intel(R) Xeon(R) Platinum 8480C", false, false},
		{"Grace", "", false, false},
		{"", "AMD EPYC 9654 96-Core Processor", false, false},
	} {
		if same, known := SameCPU(c.want, c.is); same != c.same || known != c.known {
			t.Errorf("%q and %q: %v, %v", c.want, c.is, same, known)
		}
	}
}

// TestTables: each id and family is known by one model alone, and every model that an id stands
// for has a row.
func TestTables(t *testing.T) {
	t.Parallel()
	for id, word := range gpuIDs {
		m, ok := gpuModels[word]
		if _, known := modelWords(word); known != "" || len(id) != 9 {
			t.Errorf("%s: %q", id, word)
		}
		if model, _ := modelWords(word); model != word {
			t.Errorf("%s: %s is read as %q", id, word, model)
		}
		if word != "MI250X" && word != "MI300A" && (!ok || m.memory == 0 || m.source == "") {
			t.Errorf("%s: nothing is known of %s", id, word)
		}
	}
	for i, f := range nicFamilies {
		if name, _ := familyOf(f.name + " card"); name != f.name {
			t.Errorf("%s is hidden by row %d: %s", f.name, i, name)
		}
	}
}
