// SPDX-License-Identifier: Apache-2.0

package system

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/tool/mlxconfig"
)

// Cards are the NICs of the node whose flash holds settings.
type Cards interface {
	// Card is the kind and the settings of the card at a PCI address; false where none is.
	Card(address string) (device string, list []CardSetting, ok bool)
	// SetCard writes a setting; it is in force after a power cycle.
	SetCard(address, name string, value int) error
}

// CardSetting is one setting of a card.
type CardSetting struct {
	Name                   string
	Default, Current, Next int
}

// The programs that read and write them, and what brings them: mlxconfig comes with MFT,
// which DOCA has, mstconfig with mstflint.
var cardPackages = map[string][]string{"mlxconfig": {"mft", "doca-*"}, "mstconfig": {"mstflint"}}

// cardTime is how long a question or a write takes; an estimate.
const cardTime = 800 * time.Millisecond

// Widths of the table (mlxconfig/mlxcfg_ui.cpp of Mellanox/mstflint).
const (
	cardNameWidth  = 48
	cardValueWidth = 20
)

// cardError is how both programs end when they fail.
const cardError = 3

// valueWords are the words of values; what has none is a truth value.
var valueWords = map[string][]string{
	"LINK_TYPE_P1": {"", "IB", "ETH"}, "LINK_TYPE_P2": {"", "IB", "ETH"}, "INTERNAL_CPU_OFFLOAD_ENGINE": {"ENABLED", "DISABLED"},
	"INTERNAL_CPU_PAGE_SUPPLIER": {"ECPF", "EXT_HOST_PF"}, "INTERNAL_CPU_ESWITCH_MANAGER": {"ECPF", "EXT_HOST_PF"}, "INTERNAL_CPU_IB_VPORT0": {"ECPF", "EXT_HOST_PF"},
}

// cardValue is a value with its word.
func cardValue(name string, v int) string {
	words := valueWords[name]
	if strings.HasPrefix(name, "NUM_OF_") || arrayOf(name) != "" {
		return strconv.Itoa(v)
	}
	if words == nil {
		words = []string{"False", "True"}
	}
	if v < 0 || v >= len(words) {
		return strconv.Itoa(v)
	}
	return fmt.Sprintf("%s(%d)", words[v], v)
}

// runMlxconfig is mlxconfig and mstconfig: -d DEVICE [-e] [-y] q | set NAME=VALUE ...
func runMlxconfig(ctx context.Context, c call) int {
	if name, _ := c.n.installedAs(cardPackages[c.name()]); name == "" {
		_, _ = fmt.Fprintf(c.Err, "sh: 1: %s: not found\n", c.name())
		return 127
	}
	if c.n.cfg.Clock.Sleep(ctx, cardTime) != nil {
		return 137
	}
	device := c.argAfter("-d")
	var kind string
	var list []CardSetting
	ok := c.n.cfg.Cards != nil
	if ok {
		kind, list, ok = c.n.cfg.Cards.Card(device)
	}
	if !ok {
		c.print("-E- Failed to open the device\n")
		return cardError
	}
	slices.SortFunc(list, func(a, b CardSetting) int { return cmp.Compare(a.Name, b.Name) })
	for i, word := range c.Argv {
		switch word {
		case "q", "query":
			shown, missing := selectSettings(list, c.Argv[i+1:])
			if missing != "" {
				c.print(fmt.Sprintf("-E- The Device doesn't support %s parameter\n", missing))
				return cardError
			}
			c.print(cardTable(device, kind, shown, slices.Contains(c.Argv, "-e")))
			return 0
		case "s", "set":
			return c.setCard(device, kind, list, c.Argv[i+1:])
		}
	}
	c.print("-E- No command found.\n")
	return cardError
}

// arrayOf is the array that an element belongs to: MODULE_SPLIT_M0 of MODULE_SPLIT_M0[3];
// empty: it is a setting of its own.
func arrayOf(name string) string {
	array, _, element := strings.Cut(name, "[")
	if !element {
		return ""
	}
	return array
}

// elements are the settings that a name stands for: one, or each from MODULE_SPLIT_M0[0..3].
func elements(name string) (list []string) {
	array, inner, ranged := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	first, last, ranged2 := strings.Cut(inner, "..")
	low, err := strconv.Atoi(first)
	high, err2 := strconv.Atoi(last)
	if !ranged || !ranged2 || err != nil || err2 != nil || high-low > 100 {
		return []string{name}
	}
	for i := low; i <= high; i++ {
		list = append(list, fmt.Sprintf("%s[%d]", array, i))
	}
	return list
}

// selectSettings are the settings that a query asks for by name; without names those of the
// card, of which an array is one line without its values. missing is a name that it does
// not have.
func selectSettings(list []CardSetting, names []string) (shown []CardSetting, missing string) {
	for _, ask := range names {
		for _, name := range elements(ask) {
			i := slices.IndexFunc(list, func(s CardSetting) bool { return s.Name == name })
			if i < 0 {
				return nil, ask
			}
			shown = append(shown, list[i])
		}
	}
	if len(names) > 0 {
		return shown, ""
	}
	seen := map[string]bool{}
	for _, s := range list {
		if array := arrayOf(s.Name); array != "" {
			if seen[array] {
				continue
			}
			seen[array] = true
			s = CardSetting{Name: array}
		}
		shown = append(shown, s)
	}
	return shown, ""
}

// cardHead is what stands above the table.
func cardHead(device, kind string) string {
	line := func(name, value string) string { return fmt.Sprintf("%-20s%-20s\n", name, value) }
	return "\nDevice #1:\n----------\n\n" + line("Device type:", kind) + line("Name:", "IRN0001_Ax") + line("Description:", "simulated "+kind+"; Port Split Capable; PCIe5.0 x16; Secure Boot Enabled") + line("Device:", device) + "\n"
}

// cardTable is the answer to a query, with all columns if asked for.
func cardTable(device, kind string, list []CardSetting, all bool) string {
	columns := []string{"Next Boot"}
	if all {
		columns = []string{"Default", "Current", "Next Boot"}
	}
	var b strings.Builder
	b.WriteString(cardHead(device, kind) + fmt.Sprintf("%-*s", cardNameWidth+8, "Configurations:"))
	for _, name := range columns {
		fmt.Fprintf(&b, "%-*s ", cardValueWidth, name)
	}
	b.WriteString("\n")
	differs := false
	for _, s := range list {
		mark := " "
		if all && (s.Next != s.Current || s.Next != s.Default) {
			mark, differs = "*", true
		}
		fmt.Fprintf(&b, "%s       %-*s", mark, cardNameWidth, s.Name)
		for _, name := range columns {
			text := cardValue(s.Name, map[string]int{"Default": s.Default, "Current": s.Current, "Next Boot": s.Next}[name])
			if s.Name == mlxconfig.ModuleSplit {
				text = fmt.Sprintf("Array[0..%d]", mlxconfig.SplitLanes-1)
			}
			fmt.Fprintf(&b, "%-*s", cardValueWidth, text)
		}
		b.WriteString("\n")
	}
	if differs {
		b.WriteString("The '*' shows parameters with next value different from default/current value.\n")
	}
	return b.String()
}

// setCard writes settings, all or none.
func (c call) setCard(device, kind string, list []CardSetting, sets []string) int {
	var b strings.Builder
	b.WriteString(cardHead(device, kind) + fmt.Sprintf("%-*s%-*s %-*s\n", cardNameWidth+8, "Configurations:", cardValueWidth, "Next Boot", cardValueWidth, "New"))
	values := map[string]int{}
	for _, set := range sets {
		asked, text, _ := strings.Cut(set, "=")
		base := 10
		if arrayOf(asked) != "" {
			base = 16
		}
		v, err := strconv.ParseInt(text, base, 32)
		for _, name := range elements(asked) {
			i := slices.IndexFunc(list, func(s CardSetting) bool { return s.Name == name })
			if i < 0 || err != nil {
				c.print(fmt.Sprintf("%s-E- The Device doesn't support %s parameter\n", b.String(), asked))
				return cardError
			}
			values[name] = int(v)
			fmt.Fprintf(&b, "        %-*s%-*s%-*s\n", cardNameWidth, name, cardValueWidth, cardValue(name, list[i].Next), cardValueWidth, cardValue(name, int(v)))
		}
	}
	c.print(b.String() + "\n Apply new Configuration? (y/n) [n] : y\nApplying... ")
	for name, v := range values {
		if err := c.n.cfg.Cards.SetCard(device, name, v); err != nil {
			c.print("Failed!\n-E- " + err.Error() + "\n")
			return cardError
		}
	}
	c.print("Done!\n-I- Please reboot machine to load new configurations.\n")
	return 0
}
