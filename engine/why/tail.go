// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
)

// consoleSays is the last line of the console of a step that names a cause.
func (s question) consoleSays(step string) (message ConsoleMessage, line string, ok bool) {
	c := s.Explanation.Console
	if c == nil || step == "" || c.Step.Base() != plan.StepID(step).Base() {
		return ConsoleMessage{}, "", false
	}
	for i := len(c.Lines) - 1; i >= 0; i-- {
		if text, ok := ExplainConsoleLine(c.Lines[i]); ok {
			return text, strings.TrimSpace(c.Lines[i]), true
		}
	}
	return ConsoleMessage{}, "", false
}

// shownBelow names the console where the text shows it, in an action that sends to
// read it.
func (s question) shownBelow(action, step string) string {
	c := s.Explanation.Console
	if c == nil || len(c.Lines) == 0 || c.Step.Base() != plan.StepID(step).Base() {
		return action
	}
	return strings.Replace(action, "Read the serial console of "+s.Node.Name+":", "Read its last lines on the serial console, below:", 1)
}

// console is what the node printed last while a step waited for it.
func (p *page) console(c *control.Console, node string, now time.Time) {
	if c == nil {
		return
	}
	if c.Error != "" {
		p.linef("Its serial console is not read any more: %s", endSentence(strings.TrimPrefix(c.Error, "node "+node+": ")))
	}
	p.section("Last on its serial console, read by "+shortOf(c.Step, node)+" until "+formatMoment(c.At, now), len(c.Lines))
	for _, l := range c.Lines {
		p.linef("  %s", l)
	}
	if digest, ok := strings.CutPrefix(c.Ref, "sha256:"); ok && len(digest) > 2 && len(c.Lines) > 0 {
		hex, _, _ := strings.Cut(digest, "/")
		p.linef("  (more of it: .ironrail/evidence/%s/%s)", hex[:2], hex)
	}
}
