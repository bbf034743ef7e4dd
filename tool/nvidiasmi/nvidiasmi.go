// SPDX-License-Identifier: Apache-2.0

// Package nvidiasmi reads what nvidia-smi prints: the table, -L, -q as text and
// as XML, the CSV of --query-gpu and --query-remapped-rows, topo -m, nvlink,
// mig, dmon and pmon.
//
// nvidia-smi writes "N/A" and "[Not Supported]" where a GPU has no such value,
// and "GPU is lost" or "ERR!" where it has one that cannot be read. The first
// two are null here and never 0; the others are null and a problem of kind
// failed. Its formats are those of its drivers; which element is of which
// driver was read off outputs of drivers 418 to 580 (nvsmi_device_v10.dtd to
// nvsmi_device_v13.dtd).
package nvidiasmi

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Formats are the outputs of nvidia-smi, the most specific first.
var Formats = []tool.Format{
	{Name: "nvidia-smi-qx", Is: isXML, Parse: anyParser(ParseXML)},
	{Name: "nvidia-smi-q", Is: isText, Parse: anyParser(ParseText)},
	{Name: "nvidia-smi-topo", Is: isTopology, Parse: anyParser(ParseTopology)},
	{Name: "nvidia-smi-nvlink", Is: isNVLink, Parse: anyParser(ParseNVLink)},
	{Name: "nvidia-smi-l", Is: isList, Parse: anyParser(ParseList)},
	{Name: "nvidia-smi-query", Is: isQuery, Parse: anyParser(ParseQuery)},
	{Name: "nvidia-smi-mig", Is: isMIG, Parse: anyParser(ParseMIG)},
	{Name: "nvidia-smi-dmon", Is: isMonitor, Parse: anyParser(ParseMonitor)},
	{Name: "nvidia-smi", Is: isTable, Parse: anyParser(ParseTable)},
}

// anyParser makes the Parse of a format of a typed one.
func anyParser[T any](parse func([]byte) (T, tool.Problems, error)) func([]byte) (any, tool.Problems, error) {
	return func(b []byte) (any, tool.Problems, error) {
		v, p, err := parse(b)
		if err != nil {
			return nil, p, err
		}
		return v, p, nil
	}
}

// unsaid are the words that stand where there is no value.
var unsaid = map[string]bool{
	"": true, "n/a": true, "not supported": true, "not available": true, "unknown": true, "not found": true, "no permission": true,
	"insufficient permissions": true, "requested functionality has been deprecated": true, "feature not enabled": true, "not available in wddm driver model": true,
}

// broken are the words of NVML that stand where a value cannot be read because
// something is wrong with the GPU (nvmlErrorString in nvml.h).
var broken = map[string]bool{
	"err!": true, "gpu is lost": true, "gpu requires reset": true, "unknown error": true, "gpu is inaccessible": true,
	"timeout": true, "driver not loaded": true, "corrupted inforom": true, "irq issue": true, "gpu access blocked by the operating system": true,
}

// trimCell returns a value without its blanks and the brackets of CSV output.
func trimCell(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == '[' && s[len(s)-1] == ']' {
		s = strings.TrimSpace(s[1 : len(s)-1])
	}
	return s
}

// readValue returns a value, and whether there is one.
func readValue(s string) (string, bool) {
	s = trimCell(s)
	if l := strings.ToLower(s); unsaid[l] || broken[l] {
		return "", false
	}
	return s, true
}

// parseNumber reads the number that a value begins with: "700.00 W", "16x",
// "192 bank(s)", "-5 C". A value that says nothing is nil without an error.
func parseNumber(s string) (*float64, error) {
	s, ok := readValue(s)
	if !ok {
		return nil, nil
	}
	word, _, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(strings.TrimRight(word, "x%"), 64)
	if err != nil || v != v || v > 1e18 || v < -1e18 {
		return nil, fmt.Errorf("%q is not a number", s)
	}
	return &v, nil
}

// parseYes reads the words with which nvidia-smi says that something is so.
func parseYes(s string) (*bool, error) {
	s, ok := readValue(s)
	if !ok {
		return nil, nil
	}
	var v bool
	switch strings.ToLower(s) {
	case "yes", "active", "enabled", "true", "on", "1":
		v = true
	case "no", "not active", "disabled", "false", "off", "0":
	default:
		return nil, fmt.Errorf("%q is neither yes nor no", s)
	}
	return &v, nil
}

// BusID is a PCI address as nvidia-smi writes it, 00000008:06:00.0, in the form
// of sysfs, 0008:06:00.0. Anything else is returned in lower case.
func BusID(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	domain, rest, ok := strings.Cut(s, ":")
	if ok && len(domain) == 8 && strings.HasPrefix(domain, "0000") && strings.Contains(rest, ":") {
		return domain[4:] + ":" + rest
	}
	return s
}

// complaints are sentences that nvidia-smi prints instead of, or among, what
// was asked for.
var complaints = []string{
	"nvidia-smi has failed because",
	"failed to initialize nvml",
	"no devices were found",
	"unable to determine the device handle",
	"gpu is lost",
	"reboot the system to recover this gpu",
	"unable to load the nvidia kernel module",
	"nvidia driver is not loaded",
	"couldn't communicate with the nvidia driver",
	"error: unknown error",
}

// isComplaint reports whether a line is such a sentence.
func isComplaint(line string) bool {
	l := strings.ToLower(line)
	for _, c := range complaints {
		if strings.Contains(l, c) {
			return true
		}
	}
	return false
}

// anyComplaint reports whether one of the first lines is such a sentence, from
// its begin on: a kernel log may quote one.
func anyComplaint(b []byte) bool {
	found := false
	eachLine(b[:min(len(b), 4096)], func(_ int, line string) {
		line = strings.ToLower(strings.TrimSpace(line))
		for _, c := range complaints {
			found = found || strings.HasPrefix(line, c)
		}
	})
	return found
}

// noteComplaint notes a line that is a complaint, and reports whether it is one.
func noteComplaint(n int, line string, p *tool.Problems) bool {
	if !isComplaint(line) {
		return false
	}
	p.Add(tool.Failed, n, "nvidia-smi says: %s", strings.TrimSpace(line))
	return true
}

// colour is an escape sequence of a terminal; topo underlines its heading even
// when it writes to a pipe.
var colour = lazyregexp.New("\x1b\\[[0-9;]*m")

// eachLine calls f with each line, from 1, without its end.
func eachLine(b []byte, f func(n int, line string)) {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		f(n, colour.ReplaceAllString(strings.TrimRight(string(line), "\r\n"), ""))
	}
}
