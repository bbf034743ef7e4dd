// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/observe"
)

// driftFlags are the flags of the command.
type driftFlags struct {
	kinds  []string
	bmc    string
	noBMC  bool
	accept bool
	reason string
}

func (a *app) driftCommand() *cobra.Command {
	var f driftFlags
	c := &cobra.Command{
		Use:   "drift [NODE...]",
		Short: "Show what is not as it was when nodes were accepted",
		Long: `Look at installed nodes and compare them with how they were when they were
accepted: BIOS settings, Secure Boot, firmware, image, kernel and its arguments,
drivers, packages, settings of NICs and fabrics, width and speed of links, errors
on them, cables, and what is plugged in, by serial. Settings and counters of the
switches that they are on, the cables of InfiniBand by a sweep, and the PDUs that
feed them are looked at too, where the site says how. Nothing is changed, and
nothing loaded: the last line says what is not seen by that.

Nodes are named as for plan --target; without any, all installed ones are looked
at. Kinds are ` + kindsOf(5) + `.

BMCs are left in peace: each is asked at most every ` + fmt.Sprint(int(drift.Peace.Minutes())) + ` minutes, what it said last is
used meanwhile, and at most 32 are asked at a time. Cables are heard by LLDP,
which takes half a minute; without cables among the kinds it is not waited for.

--accept takes the chosen nodes as they are now for how they are meant to be, and
journals who said so and why.

Exit codes: 0 nothing drifted, 2 something did, 3 nothing did and something could
not be looked at. Unknown is never drift. --json prints one object with nodes,
links, changes, unknown and notes.`,
		Example: `  ironrail drift
  ironrail drift rack.r01 --kind bios,firmware
  ironrail drift r01-u09 --bmc always --json | jq '.changes[]'
  ironrail drift --accept r01-u09 --reason 'new BIOS by the vendor, ticket 4711'`,
		Args:              asUsage(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeWords,
		RunE:              func(c *cobra.Command, args []string) error { return a.drift(c.Context(), args, f) },
	}
	c.Flags().StringSliceVar(&f.kinds, "kind", nil, "look at these kinds only, with commas between them")
	c.Flags().StringVar(&f.bmc, "bmc", "", `"always" asks BMCs however recently they were asked; "never" leaves them alone`)
	c.Flags().BoolVar(&f.noBMC, "no-bmc", false, "the same as --bmc never")
	c.Flags().BoolVar(&f.accept, "accept", false, "take the nodes as they are now")
	c.Flags().StringVar(&f.reason, "reason", "", "with --accept: why, for whoever asks later")
	_ = c.RegisterFlagCompletionFunc("bmc", cobra.FixedCompletions([]string{"always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(drift.Kinds, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

// kindsOf lists the kinds for the help, so many on its first line.
func kindsOf(first int) string {
	return strings.Join(drift.Kinds[:first], ", ") + ",\n" + strings.Join(drift.Kinds[first:], ", ")
}

// options checks the flags.
func (f driftFlags) options(words []string, now time.Time) (o observe.DriftOptions, err error) {
	o = observe.DriftOptions{Words: words, Kinds: f.kinds, BMCs: observe.BMCs(f.bmc), Now: now}
	for _, k := range f.kinds {
		if !drift.IsKnown(k) {
			return o, usageOf("ironrail drift", fmt.Errorf("%q is not a kind of drift.%s The kinds are %s", k, diag.DidYouMean(k, drift.Kinds), strings.Join(drift.Kinds, ", ")))
		}
	}
	if f.noBMC {
		if f.bmc != "" {
			return o, usageOf("ironrail drift", errors.New("--no-bmc and --bmc say two things about the same"))
		}
		o.BMCs = observe.BMCsNever
	}
	if o.BMCs != "" && o.BMCs != observe.BMCsAlways && o.BMCs != observe.BMCsNever {
		return o, usageOf("ironrail drift", fmt.Errorf("--bmc is %q or %q, not %q", observe.BMCsAlways, observe.BMCsNever, f.bmc))
	}
	switch {
	case f.accept && len(words) == 0:
		return o, usageOf("ironrail drift", errors.New("say which nodes are taken as they are"))
	case f.accept && f.reason == "":
		return o, usageOf("ironrail drift", errors.New("--accept needs a --reason, for whoever asks later"))
	case f.accept && (len(f.kinds) > 0 || o.BMCs != ""):
		return o, usageOf("ironrail drift", errors.New("--accept takes nodes whole: leave --kind and --bmc out"))
	}
	return o, nil
}

func (a *app) drift(ctx context.Context, words []string, f driftFlags) error {
	o, err := f.options(words, a.now())
	if err != nil {
		return err
	}
	site, _, err := a.loadFor(words)
	if err != nil {
		return err
	}
	own, err := a.own(ctx, "drift")
	if err != nil {
		return err
	}
	defer own.giveBack()
	if !a.json {
		o.Say = func(text string) { a.sayf("%s", text) }
	}
	ob, err := site.Observer(ctx, own.store)
	if err != nil {
		return err
	}
	if f.accept {
		return a.driftAccept(ctx, ob, own, o, f.reason)
	}
	d, err := ob.Drift(ctx, own.store, own.fence, o)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(d)
	} else {
		writeDrift(a, d)
	}
	if err != nil {
		return err
	}
	return driftExit(d)
}

// driftExit is how the command ends: drift counts more than what could not be seen, and what could
// not be seen is never a good end.
func driftExit(d observe.Drift) error {
	switch {
	case len(d.Changes) > 0:
		return exit{code: exitChanges}
	case len(d.Unknown) > 0:
		return exit{code: exitSomeFailed}
	}
	return nil
}

// driftTaken is what --accept prints as JSON.
type driftTaken struct {
	Taken   []string        `json:"taken"`
	Unknown []drift.Unknown `json:"unknown"`
}

func (a *app) driftAccept(ctx context.Context, ob observe.Observer, own ownership, o observe.DriftOptions, reason string) error {
	taken, unknown, err := ob.AcceptDrift(ctx, own.store, own.fence, o, operatorName(), reason)
	if a.json {
		err = errors.Join(err, a.printJSON(driftTaken{append([]string{}, taken...), append([]drift.Unknown{}, unknown...)}))
	} else {
		var p page
		for _, n := range taken {
			p.linef("%s is taken as it is.", n)
		}
		writeUnknown(&p, unknown)
		p.to(a.out)
	}
	if err == nil && len(unknown) > 0 {
		return exit{code: exitSomeFailed}
	}
	return err
}

// mostOfKind is how many changes of one kind are shown of a node.
const mostOfKind = 8

// writeDrift shows changes by node and kind, then what is unknown, then notes.
func writeDrift(a *app, d observe.Drift) {
	var p page
	for i := 0; i < len(d.Changes); {
		n := 1
		for i+n < len(d.Changes) && d.Changes[i+n].Subject() == d.Changes[i].Subject() {
			n++
		}
		writeDrifted(&p, d.Changes[i:i+n], a.now())
		i += n
	}
	writeUnknown(&p, d.Unknown)
	for _, n := range d.Notes {
		p.linef("note: %s", n.Text)
	}
	if d.Links.Changed > 0 {
		p.linef("Links: %d of %d changed since acceptance, %d of them slower, narrower or down.", d.Links.Changed, d.Links.Total, d.Links.Lower)
	}
	p.linef("%s", driftSummary(d))
	if d.Unloaded != "" {
		p.linef("%s", d.Unloaded)
	}
	p.to(a.out)
}

// writeDrifted shows the changes of one node.
func writeDrifted(p *page, list []drift.Change, now time.Time) {
	since := ""
	if !list[0].Since.IsZero() && list[0].Of == "" {
		since = ", accepted " + formatMoment(list[0].Since, now)
	}
	p.linef("%s%s", list[0].Subject(), since)
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n].Kind == list[i].Kind {
			n++
		}
		for j, c := range list[i : i+n] {
			if j == mostOfKind {
				p.linef("  %-9s and %d more; --json lists them", "", n-j)
				break
			}
			kind := ""
			if j == 0 {
				kind = c.Kind
			}
			p.linef("  %-9s %s: %s -> %s%s", kind, strings.TrimSpace(partName(c)+" "+c.Name), clipLine(c.Was, 60), clipLine(describeChange(c), 160), describeLowered(c))
		}
		p.linef("  %-9s do: %s", "", list[i].Action)
		i += n
	}
}

// partName is what a part is called: a port by the site's name, where it has one.
func partName(c drift.Change) string {
	if c.Port != "" {
		return c.Port + " (" + c.Part + ")"
	}
	return c.Part
}

// describeChange shows of a long line only the words that came and went.
func describeChange(c drift.Change) string {
	was, is := strings.Fields(c.Was), strings.Fields(c.Is)
	if c.Kind != "kernel" || len(was) < 2 {
		return c.Is
	}
	var words []string
	for _, w := range is {
		if !slices.Contains(was, w) {
			words = append(words, "+"+w)
		}
	}
	for _, w := range was {
		if !slices.Contains(is, w) {
			words = append(words, "-"+w)
		}
	}
	return strings.Join(words, " ")
}

func describeLowered(c drift.Change) string {
	if c.Lower {
		return " (lower)"
	}
	return ""
}

func writeUnknown(p *page, list []drift.Unknown) {
	for _, u := range list {
		what := u.Kind
		if what == wire.ItemHardware { // nothing else is known without it
			what = "its system"
		}
		p.linef("%s: %s was not seen: %s", u.Subject(), what, u.Why)
	}
}

// driftSummary is the last line. Of a node of which nothing was seen it does not say
// that there is no drift.
func driftSummary(d observe.Drift) string {
	changed, unseen, partly, unmanaged := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	beside, ofNodes := countBeside(d), changesOfNodes(d)
	for _, c := range ofNodes {
		changed[c.Node] = true
	}
	for _, u := range d.Unknown {
		switch {
		case u.Of != "":
		case u.Unmanaged:
			unmanaged[u.Node] = true
		case u.Kind == wire.ItemHardware: // nothing else is known without it
			unseen[u.Node] = true
			delete(partly, u.Node)
		case !unseen[u.Node]:
			partly[u.Node] = true
		}
	}
	whole := d.Nodes - len(unseen) - len(partly)
	var parts []string
	switch {
	case d.Nodes == 0:
		return "There is nothing to compare with: none of the nodes that were asked about is accepted or adopted."
	case len(changed) > 0:
		parts = append(parts, fmt.Sprintf("%d of %d %s drifted: %d %s.", len(changed), d.Nodes, pluralOf(d.Nodes, "node has", "nodes have"), len(ofNodes), pluralOf(len(ofNodes), "change", "changes")))
	case whole > 0:
		parts = append(parts, fmt.Sprintf("No drift on %d %s.", whole, pluralOf(whole, "node", "nodes")))
	}
	if n := len(partly); n > 0 && len(changed) == 0 {
		parts = append(parts, fmt.Sprintf("%d %s not seen whole: no drift in what was seen.", n, pluralOf(n, "node was", "nodes were")))
	} else if n > 0 {
		parts = append(parts, fmt.Sprintf("%d %s not seen whole.", n, pluralOf(n, "node was", "nodes were")))
	}
	if n := len(unseen); n > 0 {
		parts = append(parts, fmt.Sprintf("Nothing was seen of %d %s: whether %s drifted is not known.", n, pluralOf(n, "node", "nodes"), pluralOf(n, "it has", "they have")))
	}
	if n := len(unmanaged); n > 0 {
		parts = append(parts, fmt.Sprintf("%d %s neither accepted nor adopted.", n, pluralOf(n, "node is", "nodes are")))
	}
	return strings.Join(append(parts, beside...), " ")
}

// changesOfNodes are the changes that are about nodes.
func changesOfNodes(d observe.Drift) []drift.Change {
	return slices.DeleteFunc(slices.Clone(d.Changes), func(c drift.Change) bool { return c.Of != "" })
}

// countBeside says which switches, cables, fabrics and PDUs have drifted, or were not seen.
func countBeside(d observe.Drift) (list []string) {
	changed, unseen := map[string]bool{}, map[string]bool{}
	for _, c := range d.Changes {
		if c.Of != "" {
			changed[c.Subject()] = true
		}
	}
	for _, u := range d.Unknown {
		if u.Of != "" {
			unseen[u.Subject()] = true
		}
	}
	if n := len(changed); n > 0 {
		list = append(list, fmt.Sprintf("Beside nodes %s drifted: %s.", pluralOf(n, "1 part of the site has", fmt.Sprintf("%d parts of the site have", n)), nameFew(changed)))
	}
	if len(unseen) > 0 {
		list = append(list, fmt.Sprintf("Not seen: %s.", nameFew(unseen)))
	}
	return list
}

// nameFew names the members of a set, the first of many.
func nameFew(set map[string]bool) string {
	return subject.Some(slices.Sorted(maps.Keys(set)), 5)
}
