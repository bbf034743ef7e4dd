// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/docs/checks"
	"github.com/ironrail/ironrail/internal/errkind"
)

// explainArgs is the value of --explain where the names follow as arguments.
const explainArgs = " "

// explainNames are the checks that were asked for: `--explain NAME...`, or
// `--explain=NAME`.
func explainNames(flag string, args []string) []string {
	var names []string
	for _, name := range append([]string{flag}, args...) {
		if name = strings.Trim(name, " []`"); name != "" { // as findings and hints write it
			names = append(names, name)
		}
	}
	return names
}

// explained is a check as --explain prints it as JSON.
type explained struct {
	Check string `json:"check"`
	What  string `json:"what"`
	Page  string `json:"page,omitempty"`
}

// explain prints the pages of checks; without a name it lists all of them, and
// for the name of an area, such as "power", those of the area.
func (a *app) explain(names []string) error {
	if list := areasOf(names); len(list) > 0 {
		return a.listChecks(list)
	}
	var list []explained
	for _, name := range names {
		p, hint, ok := checks.Find(name)
		if !ok {
			err := errkind.New(errkind.NotFound, "there is no check %q", name)
			if hint != "" {
				return err.Do("Did you mean `ironrail check --explain " + hint + "`?")
			}
			return err.Do("`ironrail check --explain` lists all checks.")
		}
		width, _ := terminalSize(a.out)
		list = append(list, explained{p.Name, p.What, p.Plain(width)})
	}
	if a.json {
		return a.printJSON(list)
	}
	for i, e := range list {
		if i > 0 {
			a.print("\n")
		}
		a.print(e.Page)
	}
	return nil
}

// areasOf returns the checks to list: all without names, and those of an area for
// one that is an area's. It is empty for names of checks.
func areasOf(names []string) []checks.Page {
	if len(names) > 1 {
		return nil
	}
	return slices.DeleteFunc(checks.All(), func(p checks.Page) bool { return len(names) == 1 && p.Area() != names[0] })
}

// listChecks names checks with what they find.
func (a *app) listChecks(all []checks.Page) error {
	if a.json {
		list := make([]explained, len(all))
		for i, p := range all {
			list[i] = explained{Check: p.Name, What: p.What}
		}
		return a.printJSON(list)
	}
	longest := 0
	for _, p := range all {
		longest = max(longest, len(p.Name))
	}
	width, _ := terminalSize(a.out)
	var out page
	for i, p := range all {
		if i > 0 && p.Area() != all[i-1].Area() {
			out.linef("")
		}
		out.linef("%-*s  %s", longest, p.Name, clipLine(p.What, max(40, width-longest-2)))
	}
	out.to(a.out)
	return nil
}

// print writes text of our own to standard output.
func (a *app) print(text string) {
	var p page
	p.WriteString(text)
	p.to(a.out)
}

// completeChecks offers the names of checks to the shell.
func (a *app) completeChecks(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if !c.Flags().Changed("explain") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range checks.All() {
		names = append(names, p.Name+"\t"+p.What)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
