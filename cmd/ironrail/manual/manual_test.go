// SPDX-License-Identifier: Apache-2.0

package manual_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/cmd/ironrail/manual"
)

// TestPage: what roff reads as a request or as another character is text.
func TestPage(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "tool", Short: "Do it"}
	sub := &cobra.Command{
		Use: "run FILE", Short: "Run a file",
		Long:    "Run it.\n.so /etc/passwd is no request,\n'nor is this: a \\ b.\n\n  a  table\n  .of two lines",
		Example: "  tool run ~/x --fast",
		RunE:    func(*cobra.Command, []string) error { return nil },
	}
	sub.Flags().Bool("fast", false, "do not wait")
	sub.Flags().Bool("secret-switch", false, "none of help")
	_ = sub.Flags().MarkHidden("secret-switch")
	root.PersistentFlags().StringP("chdir", "C", ".", "the `FOLDER`")
	root.AddCommand(sub, &cobra.Command{Use: "old", Hidden: true, Run: func(*cobra.Command, []string) {}})

	var names []string
	for _, c := range manual.Commands(root) {
		names = append(names, manual.Name(c))
	}
	if got, want := strings.Join(names, " "), "tool tool-run"; got != want {
		t.Errorf("pages %q, want %q", got, want)
	}
	got := string(manual.Page(sub, manual.Source{Version: "v1.2", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}))
	want := `.TH "TOOL\-RUN" 1 "2026\-01\-02" "tool v1.2" "tool"
.SH NAME
tool\-run \- Run a file
.SH SYNOPSIS
.B tool run FILE [flags]
.SH DESCRIPTION
Run it.
\&.so /etc/passwd is no request,
\(aqnor is this: a \e b.
.PP
.nf
  a  table
  .of two lines
.fi
.SH OPTIONS
.TP
.B \-\-fast
do not wait
.SH OPTIONS OF ALL COMMANDS
.TP
.B \-C, \-\-chdir FOLDER
the FOLDER (default .)
.SH EXAMPLES
.PP
.nf
  tool run \(ti/x \-\-fast
.fi
.SH SEE ALSO
.BR tool (1)
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
