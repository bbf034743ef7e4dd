// SPDX-License-Identifier: Apache-2.0

package bought

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// gpuIDs are PCI ids of GPUs with the word that their makers call the model by (pci.ids;
// github.com/NVIDIA/gpu-admin-tools, gpu/devid_names.py). An id that stands for several
// models, and one that is not here, says nothing.
var gpuIDs = map[string]string{
	"10de:20b0": "A100", "10de:20b1": "A100", "10de:20b2": "A100", "10de:20b3": "A100", "10de:20b5": "A100", "10de:20f1": "A100",
	"10de:20f3": "A800", "10de:20f5": "A800", "10de:20f6": "A800", "10de:20b7": "A30", "10de:2235": "A40", "10de:26b5": "L40", "10de:26b9": "L40S",
	"10de:2313": "H100", "10de:2321": "H100", "10de:2330": "H100", "10de:2331": "H100", "10de:2336": "H100", "10de:2339": "H100",
	"10de:2322": "H800", "10de:2324": "H800", "10de:2329": "H20", "10de:232c": "H20", "10de:2335": "H200", "10de:233b": "H200", "10de:2348": "GH200",
	"10de:2901": "B200", "10de:2941": "GB200",
	"1002:738c": "MI100", "1002:740f": "MI210", "1002:7408": "MI250X", "1002:74a0": "MI300A", "1002:74a1": "MI300X", "1002:74a5": "MI325X", "1002:75a3": "MI355X",
}

// gpuModel is what is known of a model of GPU: the least memory that it is sold with, bytes,
// and the speed of its PCIe link, GT/s. 0: not known, or not the same in all variants.
type gpuModel struct {
	memory float64
	speed  float64
	source string
}

const sheet = "its maker's data sheet"

// gpuModels are models by the word that they are called by. Superchips reach their CPU over
// NVLink-C2C, and have no speed here.
var gpuModels = map[string]gpuModel{
	"A100": {40e9, 16, sheet}, "A800": {40e9, 16, sheet}, "A30": {24e9, 16, sheet}, "A40": {48e9, 16, sheet}, "L40": {48e9, 16, sheet}, "L40S": {48e9, 16, sheet},
	"H100": {64e9, 32, sheet}, "H800": {80e9, 32, sheet}, "H20": {96e9, 32, sheet}, "H200": {141e9, 32, sheet}, "GH200": {96e9, 0, sheet},
	"B200": {180e9, 32, sheet}, "GB200": {186e9, 0, sheet}, "B300": {262e9, 32, sheet}, "GB300": {262e9, 0, sheet},
	"MI100": {32e9, 16, sheet}, "MI210": {64e9, 16, sheet}, "MI300X": {192e9, 32, sheet}, "MI325X": {256e9, 32, sheet}, "MI355X": {288e9, 32, sheet},
}

// nicIDs are PCI ids of NICs with the family that blocks call them by (pci.ids). Of words that
// begin alike the longest stands first.
var nicFamilies = []struct {
	name string // in lower case
	ids  []string
}{
	{"connectx-8", []string{"15b3:1023"}}, {"connectx-7", []string{"15b3:1021"}}, {"connectx-6 dx", []string{"15b3:101d"}}, {"connectx-6 lx", []string{"15b3:101f"}},
	{"connectx-6", []string{"15b3:101b"}}, {"connectx-5 ex", []string{"15b3:1019"}}, {"connectx-5", []string{"15b3:1017", "15b3:1019"}}, {"connectx-4 lx", []string{"15b3:1015"}},
	{"connectx-4", []string{"15b3:1013"}}, {"bluefield-3", []string{"15b3:a2d9", "15b3:a2dc"}}, {"bluefield-2", []string{"15b3:a2d6"}},
	{"bcm57608", []string{"14e4:1760"}}, {"thor2", []string{"14e4:1760"}}, {"bcm57508", []string{"14e4:1750"}}, {"bcm57504", []string{"14e4:1751"}},
	{"e810", []string{"8086:1591", "8086:1592", "8086:1593", "8086:1599", "8086:159a", "8086:159b"}}, {"x710", []string{"8086:1572", "8086:104e", "8086:1581", "8086:1585", "8086:1586", "8086:15ff"}},
	{"x550", []string{"8086:1563"}}, {"i350", []string{"8086:1521", "8086:1522", "8086:1523", "8086:1524"}},
}

// familyOf returns the family that a model of a block is of, and its PCI ids; "" for one that
// is not known.
func familyOf(model string) (name string, ids []string) {
	model = strings.ToLower(model)
	for _, f := range nicFamilies {
		if strings.Contains(model, f.name) {
			return f.name, f.ids
		}
	}
	return "", nil
}

// familyOfID returns the family of a PCI id; "" for one that is not known.
func familyOfID(id string) string {
	for _, f := range nicFamilies {
		if slices.Contains(f.ids, id) {
			return f.name
		}
	}
	return ""
}

// The words of a GPU's name that two makers of lists write alike: H100, GB200, MI300X,
// L40S; and what memory it has.
var (
	gpuWord    = lazyregexp.New(`^(GB|GH|MI|[ABHLPTV])[0-9]{1,3}[A-Z]?$`)
	memoryWord = lazyregexp.New(`^[0-9]{2,3}GB$`)
)

func wordsOf(name string) []string {
	return strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}

// modelWords returns the words of a name by which models are compared; empty where it
// has none. Names of superchips say the memory of their CPU (NVIDIA GH200 480GB): it is left out.
func modelWords(name string) (model, memory string) {
	for _, w := range wordsOf(name) {
		switch {
		case model == "" && gpuWord.MatchString(w):
			model = w
		case memory == "" && memoryWord.MatchString(w):
			memory = w
		}
	}
	if strings.HasPrefix(model, "G") {
		return model, ""
	}
	return model, memory
}

// SameGPU reports whether two names can be of one model; known is false where they
// have nothing by which they could be compared.
func SameGPU(want, is string) (same, known bool) {
	if strings.EqualFold(want, is) {
		return true, true
	}
	model, memory := modelWords(want)
	otherModel, otherMemory := modelWords(is)
	if model == "" || otherModel == "" {
		return false, false
	}
	return model == otherModel && (memory == "" || otherMemory == "" || memory == otherMemory), true
}

// SameCPU reports whether the kernel's name of a CPU can be that of a block's model: each word
// with a digit of the shorter one, such as 8480C or 9654, is in the longer. known is false
// where one of them has no such word.
func SameCPU(want, is string) (same, known bool) {
	if want != "" && strings.EqualFold(want, is) {
		return true, true
	}
	wanted, shown := numbered(want), numbered(is)
	if len(wanted) == 0 || len(shown) == 0 {
		return false, false
	}
	for _, w := range wanted {
		if !slices.Contains(shown, w) {
			return false, true
		}
	}
	return true, true
}

// numbered are the words of a CPU's name with a digit, without what is the same in many:
// clocks, counts of cores and generations.
func numbered(name string) (list []string) {
	fields := wordsOf(name)
	for i, w := range fields {
		switch {
		case !strings.ContainsAny(w, "0123456789"), strings.HasSuffix(w, "GHZ"), cpuNoise.MatchString(w):
		case i+1 < len(fields) && (fields[i+1] == "CORE" || fields[i+1] == "CORES" || fields[i+1] == "GEN" || fields[i+1] == "GENERATION"):
		default:
			list = append(list, w)
		}
	}
	return list
}

// cpuNoise are words with a digit that name no model: v4 of a Xeon E5 does, and stays.
var cpuNoise = lazyregexp.New(`^([0-9]|[0-9]+(TH|ND|RD|ST)|[0-9]X|[0-9]+CORE|[0-9]{2,3}C|[0-9]{2})$`)
