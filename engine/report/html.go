// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed report.html
var page string

// HTML writes the report as one page, which needs no other file, no script and no
// network. Text from outside is escaped, for HTML and for terminals.
func HTML(w io.Writer, in Input) error {
	in = orderInput(in)
	t, err := template.New("report").Funcs(template.FuncMap{
		"clean": clean, "where": formatPlace, "limit": formatLimit, "value": formatValue, "most": RoleRow.most, "others": RoleRow.others, "approval": approvalText, "chain": chainText,
		"join":    func(list []string) string { return clean(strings.Join(list, ", ")) },
		"time":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"short":   func(d Duration) string { return formatDuration(time.Duration(d)) },
		"counts":  func(k kind) string { return countOutcomes(k.all()) },
		"figures": figureTexts, "bundles": textsOf[Bundle],
		"return": func(p *FailedPart) []string { return returnText(in, p) },
		"cause":  partCause,
		"proof":  func(k kind) []string { return collectProven(Input{Tests: k.Tests}) },
	}).Parse(page)
	if err != nil {
		return err
	}
	count := 0
	for _, n := range in.Nodes {
		if n.Status == Accepted {
			count++
		}
	}
	own, common := extractShared(in)
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		Input
		Accepted  int
		NotProven []string
		Proves    []string
		Kinds     []kind
		Own       []Node   // with the findings that no other node has
		Shared    []shared // findings of several nodes
		Overview  drawnOverview
	}{in, count, collectNotProven(in), collectProven(in), groupByTitle(in.Tests), own, common, drawOverview(in)})
	if err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}
