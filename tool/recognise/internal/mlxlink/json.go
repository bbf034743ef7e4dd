// SPDX-License-Identifier: Apache-2.0

package mlxlink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// jsonKeys is what the object of --json has within "output".
var jsonKeys = lazyregexp.New(`"(?:Operational Info|PCIe Operational \(Enabled\) Info)"\s*:\s*\{`)

func isJSON(data []byte) bool {
	data = data[:min(len(data), 64<<10)]
	return bytes.Contains(data, []byte(`"output"`)) && jsonKeys.Match(data)
}

// parseJSON reads the object of --json. Its values are texts, or lists with a mask.
func parseJSON(data []byte) (*Link, tool.Problems, error) {
	var problems tool.Problems
	text, ok := jsontext.Find(data)
	if !ok {
		return nil, nil, errors.New("it has no object of mlxlink")
	}
	if text.Cut {
		problems.Add(tool.Truncated, 0, "The object ends before its end: what it has so far was read.")
	}
	var file struct {
		Status struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"status"`
		Result struct {
			Output map[string]map[string]json.RawMessage `json:"output"`
		} `json:"result"`
	}
	if err := json.Unmarshal(text.Data, &file); err != nil {
		return nil, nil, fmt.Errorf("it is no object of mlxlink: %w", err)
	}
	if file.Result.Output[operational] == nil && file.Result.Output[pcie] == nil {
		return nil, nil, errors.New("it has no link of mlxlink")
	}
	if file.Status.Code != 0 {
		problems.Add(tool.Failed, 0, "mlxlink failed: %s (%d)", file.Status.Message, file.Status.Code)
	}
	l := &Link{Sections: map[string]map[string]string{}}
	for section, values := range file.Result.Output {
		l.Sections[section] = map[string]string{}
		for key, value := range values {
			l.Sections[section][key] = formatPlain(value)
		}
	}
	l.finish(&problems)
	return l, problems, nil
}

// formatPlain makes text of a value: of a list with its mask, "0x3f (EDR,FDR)" as the
// other form has it.
func formatPlain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var list struct {
		Mask   string   `json:"mask"`
		Values []string `json:"values"`
	}
	if json.Unmarshal(value, &list) != nil || list.Values == nil {
		return string(value)
	}
	joined := strings.Join(list.Values, ",")
	if list.Mask == "" {
		return joined
	}
	return list.Mask + " (" + joined + ")"
}
