// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory/vendorlist"
)

// refuse shows problems, all of them.
func (i *importing) refuse(problems []vendorlist.Problem) error {
	i.report.Problems = problems
	if !i.json {
		for _, p := range problems {
			switch {
			case p.Line == 0:
				i.sayf("%s: %s", i.report.File, p.Text)
			case p.Column == "":
				i.sayf("%s:%d: %s", i.report.File, p.Line, p.Text)
			default:
				i.sayf("%s:%d: %s: %s", i.report.File, p.Line, p.Column, p.Text)
			}
		}
	}
	n := len(problems)
	return errkind.New(errkind.Invalid, "the list has %d %s; nothing was written", n, pluralOf(n, "mistake", "mistakes"))
}

// unanswered ends an import with questions and nobody to answer them.
func (i *importing) unanswered(questions []vendorlist.Question) error {
	var flags []string
	for _, q := range questions {
		if !i.json {
			i.sayf("Which column is %s?", q.Field)
			i.showCandidates(q)
		}
		flags = append(flags, fmt.Sprintf("--map %s=%q", q.Field, q.Candidates[0].Header))
	}
	return errkind.New(errkind.Invalid, "it is not clear which columns are meant; nothing was written").
		Do("Say it, such as " + strings.Join(flags, " ") + "; - says that the list does not have it.")
}

func (i *importing) showCandidates(q vendorlist.Question) {
	for n, c := range q.Candidates {
		sample := strings.Join(c.Sample, ", ")
		if q.Field == vendorlist.FactoryPassword {
			sample = "(values are not shown)"
		}
		i.sayf("  %d  %-24q #%-3d %s", n+1, c.Header, c.Column+1, clipLine(sample, 60))
	}
}

// answer asks one question until it has an answer.
func (i *importing) answer(q vendorlist.Question) error {
	i.sayf("Which column is %s?", q.Field)
	i.showCandidates(q)
	for {
		fmt.Fprintf(i.err, "Type 1 to %d, or - when the list does not have it: ", len(q.Candidates))
		line, err := i.answers.ReadString('\n')
		word := strings.TrimSpace(line)
		if n, bad := strconv.Atoi(word); bad == nil && n >= 1 && n <= len(q.Candidates) {
			i.asked[q.Field] = "#" + strconv.Itoa(q.Candidates[n-1].Column+1)
			return nil
		}
		if word == vendorlist.None {
			i.asked[q.Field] = vendorlist.None
			return nil
		}
		if err != nil {
			return errkind.New(errkind.Refused, "no answer; nothing was written")
		}
	}
}

// showColumns says what was taken for what.
func (i *importing) showColumns() {
	left := ""
	if n := i.report.LeftOut; n > 0 {
		left = fmt.Sprintf("; %d %s no part of the table", n, pluralOf(n, "row is", "rows are"))
	}
	i.sayf("%s: %d %s%s.", i.report.File, i.report.Nodes, pluralOf(i.report.Nodes, "node", "nodes"), left)
	for _, f := range vendorlist.Fields() {
		if h, ok := i.report.Columns[string(f)]; ok {
			i.sayf("  %-18s %s", f, h)
		}
	}
	if len(i.report.Unused) > 0 {
		i.sayf("  %-18s %s", "not used", shortenNames(i.report.Unused, 12))
	}
}

// showResult says what there is now, and prints the HCL that reads it.
func (i *importing) showResult(m *vendorlist.Manifest, same bool) {
	done := "is written"
	if same {
		done = "is as it was"
	}
	i.sayf("%s %s: %d %s.", i.flags.out, done, m.Len(), pluralOf(m.Len(), "node", "nodes"))
	if n := i.report.Passwords; n > 0 {
		i.sayf("It holds %d factory %s: only its owner can read it (mode 0600), and it does not belong into git.", n, pluralOf(n, "password", "passwords"))
		if none := m.Len() - n; none > 0 {
			i.sayf("%d %s no factory password.", none, pluralOf(none, "node has", "nodes have"))
		}
	}
	fmt.Fprint(i.out, manifestHCL(i.flags.out, m))
}

// manifestHCL is the part of a site that uses a manifest.
func manifestHCL(file string, m *vendorlist.Manifest) string {
	var b strings.Builder
	attr := func(name, value string) { fmt.Fprintf(&b, "    %-16s = %s\n", name, value) }
	fmt.Fprintf(&b, "locals {\n  shipped = csvdecode(file(%q))\n}\n\nrack \"r\" {\n  for_each = toset([for r in local.shipped : r.rack])\n  name     = each.key\n  # number, row, units, PDUs ...\n\n  node \"n\" {\n", file)
	attr("for_each", "{ for r in local.shipped : r.unit => r if r.rack == rack.name }")
	if m.Has(vendorlist.Name) {
		attr("name", "each.value.name")
	} else {
		attr("name", `"${rack.name}-u${format("%02d", tonumber(each.key))}"`)
	}
	attr("role", "role.worker")
	attr("unit", "tonumber(each.key)")
	for _, f := range []vendorlist.Field{vendorlist.Serial, vendorlist.UUID, vendorlist.BootMAC, vendorlist.BMCMAC} {
		if m.Has(f) {
			attr(string(f), "each.value."+string(f))
		}
	}
	if m.Has(vendorlist.FactoryPassword) {
		value := fmt.Sprintf(`secret("csv:%s#${each.value.serial}/factory_password")`, file)
		if m.Count(vendorlist.FactoryPassword) < m.Len() {
			value = `each.value.factory_password == "" ? null : ` + value
		}
		attr("factory_password", value)
	}
	b.WriteString("  }\n}\n")
	return b.String()
}
