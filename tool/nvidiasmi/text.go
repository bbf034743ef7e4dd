// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"bytes"
	"errors"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// errText says that there is no report of nvidia-smi -q.
var errText = errors.New(`no line "NVSMI LOG" and no GPU heading in it`)

// gpuHeading begins the section of one GPU: "GPU 00000000:19:00.0".
var gpuHeading = lazyregexp.New(`^\s*GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$`)

func isText(b []byte) int {
	if bytes.Contains(b[:min(len(b), 8192)], []byte("=NVSMI LOG=")) {
		return 100
	}
	return 0
}

// ParseText reads nvidia-smi -q, whole or of one display (-d ECC).
func ParseText(b []byte) (Log, tool.Problems, error) {
	var p tool.Problems
	root, found := parseSections(b, &p)
	if !found {
		return Log{}, nil, errText
	}
	log := fillLog(reader{root, &p}, func(s *branch) (string, bool) { return s.value, s.name == "gpu" })
	if n := len(root.sub); n > 0 && len(log.GPUs) > 0 && !bytes.HasSuffix(b, []byte("\n")) && isCut(root) {
		p.Add(tool.Truncated, bytes.Count(b, []byte("\n"))+1, "the last line has no value")
	}
	return log, p, nil
}

// parseSections reads lines into a tree by their indentation.
func parseSections(b []byte, p *tool.Problems) (*branch, bool) {
	root := &branch{name: "log"}
	type level struct {
		indent int
		*branch
	}
	stack := []level{{-1, root}}
	found := false
	eachLine(b, func(n int, line string) {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
			return
		case strings.Contains(text, "=NVSMI LOG="):
			found = true
			return
		case !strings.Contains(text, " : ") && noteComplaint(n, text, p):
			return
		}
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		e := &branch{line: n}
		if m := gpuHeading.FindStringSubmatch(line); m != nil {
			e.name, e.value, found = "gpu", m[1], true
		} else {
			key, value, _ := strings.Cut(text, ": ")
			e.name, e.value = normalizeLabel(strings.TrimSuffix(strings.TrimSpace(key), ":")), strings.TrimSpace(value)
		}
		for len(stack) > 1 && (stack[len(stack)-1].indent >= indent || len(stack) > deepest) {
			stack = stack[:len(stack)-1]
		}
		stack[len(stack)-1].grow(e)
		stack = append(stack, level{indent, e})
	})
	return root, found
}

// isCut reports whether the last line of the last GPU is a name without a value
// or a section without content.
func isCut(root *branch) bool {
	last := root
	for len(last.sub) > 0 {
		last = last.sub[len(last.sub)-1]
	}
	return last.value == "" && last != root
}
