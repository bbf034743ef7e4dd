// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
)

// TestConsoleMessages: each message is known by its own text, in lower case, and says what to do and whose
// it is; none hides behind one before it.
func TestConsoleMessages(t *testing.T) {
	t.Parallel()
	for _, want := range consoleMessages {
		got, ok := ExplainConsoleLine(strings.ToUpper(want.Text))
		if !ok || got != want || want.Text != strings.ToLower(want.Text) || !strings.HasSuffix(want.Action, ".") || want.Source == "" || strings.HasSuffix(want.Cause, ".") {
			t.Errorf("%q is explained by %+v", want.Text, got)
		}
	}
}
