// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/selection"
	"github.com/ironrail/ironrail/provision/status"
)

// whySwitch tells of a switch or of a port of one; false where the word names nodes. A
// word that can only be one name and is none is an error.
func (a *app) whySwitch(ctx context.Context, inv *inventory.Inventory, word string, f whyFlags) (bool, error) {
	if _, node := inv.Node(word); node {
		return false, nil
	}
	if sw, _ := status.FindSwitch(inv, word); sw == nil {
		if _, err := selection.ReadNodes(inv, []string{word}); err != nil && !strings.ContainsAny(word, "*?[!,.") {
			return false, status.UnknownName(inv, word)
		}
		return false, nil
	}
	y, owned, err := a.onRecord(inv).Switch(ctx, word)
	if err != nil {
		return false, err
	}
	s := why.ExplainSwitch(y, owned, a.now())
	if a.json {
		return true, a.printJSON(s)
	}
	text := s.Text
	if f.all {
		text = s.FullText
	}
	_, err = io.WriteString(a.out, text(a.now()))
	return true, err
}

// completeWordsAndSwitches completes what why takes: words for nodes, and switches.
func (a *app) completeWordsAndSwitches(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	words, directive := a.completeWords(c, args, begun)
	if inv, diags, _ := a.loadInventory(); !diags.HasErrors() && len(args) == 0 {
		words = append(words, status.ListSwitches(inv)...)
	}
	return words, directive
}
