// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// errXML says that there is no document of nvidia-smi.
var errXML = errors.New("no <nvidia_smi_log> in it")

func isXML(b []byte) int {
	if begin := b[:min(len(b), 8192)]; bytes.Contains(begin, []byte("<nvidia_smi_log")) {
		return 100
	}
	return 0
}

// ParseXML reads nvidia-smi -q -x. What stands before and after the document is
// left alone, so that the output of a shell can be given.
func ParseXML(b []byte) (Log, tool.Problems, error) {
	var p tool.Problems
	from := bytes.Index(b, []byte("<nvidia_smi_log"))
	if from < 0 {
		return Log{}, nil, errXML
	}
	root := buildTree(b[from:], bytes.Count(b[:from], []byte("\n")), &p)
	log := fillLog(reader{root, &p}, func(s *branch) (string, bool) { return s.value, s.name == "gpu" })
	return log, p, nil
}

// buildTree reads elements into a tree, as far as the document goes. An id attribute
// of an element is its value.
func buildTree(b []byte, lineOffset int, p *tool.Problems) *branch {
	d := xml.NewDecoder(bytes.NewReader(b))
	root := &branch{name: "nvidia_smi_log"}
	stack := []*branch{}
	skipped := 0
	for {
		token, err := d.Token()
		line, _ := d.InputPos()
		line += lineOffset
		if err != nil {
			reportEnd(err, line, p)
			return root
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(stack) == deepest {
				skipped++
				continue
			}
			e := &branch{name: normalizeLabel(t.Name.Local), line: line}
			if len(stack) == 0 {
				e = root
			} else {
				stack[len(stack)-1].grow(e)
			}
			e.value = idOf(t.Attr)
			stack = append(stack, e)
		case xml.CharData:
			if s := strings.TrimSpace(string(t)); s != "" && len(stack) > 0 && skipped == 0 && len(stack[len(stack)-1].value) < longest {
				stack[len(stack)-1].value += s
			}
		case xml.EndElement:
			if skipped > 0 {
				skipped--
				continue
			}
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return root
			}
		}
	}
}

// idOf is the attribute id of an element; empty where it has none.
func idOf(attributes []xml.Attr) (value string) {
	for _, a := range attributes {
		if a.Name.Local == "id" {
			value = a.Value
		}
	}
	return value
}

// reportEnd notes why a document could not be read to its end.
func reportEnd(err error, line int, p *tool.Problems) {
	var syntax *xml.SyntaxError
	if errors.Is(err, io.EOF) || errors.As(err, &syntax) && strings.Contains(syntax.Msg, "unexpected EOF") {
		p.Add(tool.Truncated, line, "the document ends before </nvidia_smi_log>")
		return
	}
	p.Add(tool.Inconsistent, line, "not XML from here on: %v", err)
}
