// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

// document is what dcgmi diag -j prints: of DCGM 2 and 3 under the first key, of
// DCGM 4 under the second.
type document struct {
	Old *diagnosis `json:"DCGM GPU Diagnostic"`
	New *diagnosis `json:"DCGM Diagnostic"`

	Version  string         `json:"version"`
	Driver   string         `json:"Driver Version Detected"`
	Metadata map[string]any `json:"metadata"`

	Iterations []document `json:"iterations"` // of --iterations, DCGM 4
	Warning    string     `json:"warning"`    // why the last of them was the last
}

type diagnosis struct {
	Version      string `json:"version"`
	Driver       string `json:"Driver Version Detected"`
	RuntimeError any    `json:"runtime_error"`
	Categories   []struct {
		Category string `json:"category"`
		Tests    []struct {
			Name    string    `json:"name"`
			Results []outcome `json:"results"`
			Summary *outcome  `json:"test_summary"` // of DCGM 4: of all, with the notes of no entity
		} `json:"tests"`
	} `json:"test_categories"`
}

// outcome is how a test ended on one entity, or as a whole.
type outcome struct {
	GPUs     any    `json:"gpu_ids"`
	GPU      any    `json:"gpu_id"`
	Group    string `json:"entity_group"`
	Entity   any    `json:"entity_id"`
	Status   string `json:"status"`
	Info     any    `json:"info"`
	Warnings any    `json:"warnings"`
}

func (o outcome) result() Result {
	return Result{
		Entities: firstText(formatValue(o.GPUs), formatValue(o.GPU), strings.TrimSpace(o.Group+" "+formatValue(o.Entity))), Status: parseStatus(o.Status),
		Info: collectTexts(o.Info), Warnings: collectTexts(o.Warnings),
	}
}

// whole is what a summary says that no result of an entity does; false if nothing.
func (o outcome) whole(results []Result) (Result, bool) {
	r := o.result()
	same := false
	for _, of := range results {
		same = same || of.Status == r.Status
		r.Info = slices.DeleteFunc(r.Info, func(s string) bool { return slices.Contains(of.Info, s) })
		r.Warnings = slices.DeleteFunc(r.Warnings, func(s string) bool { return slices.Contains(of.Warnings, s) })
	}
	return r, !same || len(r.Info) > 0 || len(r.Warnings) > 0
}

func parseJSON(data []byte, problems *tool.Problems) (Content, error) {
	text, ok := jsontext.Find(data)
	if !ok {
		return Content{}, fmt.Errorf("there is no JSON in it")
	}
	if text.Cut {
		problems.Add(tool.Truncated, 0, "the output ends before its end: what it has so far was read")
	}
	var doc document
	if err := json.Unmarshal(text.Data, &doc); err != nil {
		return Content{}, fmt.Errorf("JSON of dcgmi: %w", err)
	}
	c := Content{Command: "diag", Tests: []Test{}}
	for _, run := range append([]document{doc}, doc.Iterations...) {
		c.add(run, problems)
	}
	if doc.Warning != "" {
		problems.Add(tool.Failed, 0, "%s", doc.Warning)
	}
	if len(c.Tests) == 0 {
		problems.Add(tool.Missing, 0, "there is no test")
	}
	return c, nil
}

// add takes over what one run of the diagnosis says.
func (c *Content) add(doc document, problems *tool.Problems) {
	d := doc.New
	if d == nil {
		d = doc.Old
	}
	if d == nil {
		d = &diagnosis{}
	}
	c.Version = firstText(c.Version, d.Version, doc.Version, formatValue(doc.Metadata["version"]), formatValue(doc.Metadata["DCGM Version"]))
	c.Driver = firstText(c.Driver, d.Driver, doc.Driver, formatValue(doc.Metadata["Driver Version Detected"]))
	if e := formatValue(d.RuntimeError); e != "" {
		problems.Add(tool.Failed, 0, "%s", e)
	}
	for _, category := range d.Categories {
		for _, t := range category.Tests {
			test := Test{Category: category.Category, Name: t.Name, Results: []Result{}}
			for _, r := range t.Results {
				test.Results = append(test.Results, r.result())
			}
			if t.Summary != nil {
				if r, ok := t.Summary.whole(test.Results); ok {
					test.Results = append([]Result{r}, test.Results...)
				}
			}
			c.Tests = append(c.Tests, test)
		}
	}
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// formatValue returns a value as text; empty when there is none.
func formatValue(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// collectTexts returns the texts of a note: DCGM 2 writes one, DCGM 3 and 4 a list of texts
// or of objects with the key "warning".
func collectTexts(v any) (all []string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			all = append(all, collectTexts(x)...)
		}
	case map[string]any:
		return collectTexts(v["warning"])
	default:
		if s := formatValue(v); s != "" {
			return []string{s}
		}
	}
	return all
}
