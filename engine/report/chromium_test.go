// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/chromium"
)

// TestPeerChromium shows the page of a small and of a large site as a browser and a printer
// see it: it is not blank, nothing is wider than the window, A4 and Letter
// take it, and each failed part begins a sheet.
func TestPeerChromium(t *testing.T) {
	peertest.Need(t, "pdfinfo", "pdftotext")
	dir, b := t.TempDir(), chromium.Open(t)
	papers := map[string][]string{"lab": {"Letter", "A4"}, "1024": {"A4"}} // a large one takes long
	for name, in := range map[string]Input{"lab": lab(), "1024": large(1024)} {
		var page bytes.Buffer
		if err := HTML(&page, in); err != nil {
			t.Fatal(err)
		}
		for _, paper := range papers[name] {
			text := strings.Replace(page.String(), "@page { margin: 12mm; }", "@page { margin: 12mm; size: "+paper+"; }", 1)
			if text == page.String() {
				t.Fatal("the page has no margins")
			}
			file := filepath.Join(dir, name+paper+".html")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			wantPrinted(t, b, file, paper, len(collectFailed(orderInput(in))))
		}
		b.Shoot(filepath.Join(dir, name+"A4.html"), "1100,1600", filepath.Join(dir, name+".png"))
	}
}

// wantPrinted prints a page, and wants the paper, and a sheet for each part that begins with its
// name.
func wantPrinted(t *testing.T, b chromium.Browser, file, paper string, parts int) {
	t.Helper()
	pdf := strings.TrimSuffix(file, ".html") + ".pdf"
	b.Print(file, pdf)
	info, err := exec.CommandContext(t.Context(), "pdfinfo", pdf).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"A4": "A4", "Letter": "letter"}[paper]; !strings.Contains(string(info), want) {
		t.Errorf("%s is not printed on %s:\n%s", file, paper, info)
	}
	text, err := exec.CommandContext(t.Context(), "pdftotext", "-layout", pdf, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	sheets := strings.Split(string(text), "\f")
	for _, sheet := range sheets[1:] {
		if first, _, _ := strings.Cut(strings.TrimSpace(sheet), "\n"); strings.Contains(first, "rail 3") || strings.Contains(first, "rail 0") {
			begun++
		}
	}
	if begun < parts {
		t.Errorf("%s: of %d parts %d begin one of %d sheets", file, parts, begun, len(sheets))
	}
	if !strings.Contains(sheets[0], "Not accepted as a whole") {
		t.Errorf("%s: the first sheet has no verdict:\n%s", file, sheets[0])
	}
}
