// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/chromium"
)

// TestPeerChromium shows the page of a site as a browser and a printer see it: it is
// not blank, nothing is wider than the window, and it prints no more pages than sheets.
func TestPeerChromium(t *testing.T) {
	peertest.Need(t, "pdfinfo")
	dir := t.TempDir()
	d := newTestDrawing(sized(9), Options{})
	sheets := d.All()
	var b bytes.Buffer
	if err := d.HTML(&b, sheets, nil); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "site.html")
	if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	browser := chromium.Open(t)
	browser.Shoot(page, "1000,1400", filepath.Join(dir, "site.png"))
	pdf := filepath.Join(dir, "site.pdf")
	browser.Print(page, pdf)
	out, err := exec.CommandContext(t.Context(), "pdfinfo", pdf).Output()
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for line := range strings.Lines(string(out)) {
		if n, ok := strings.CutPrefix(line, "Pages:"); ok {
			if _, err := fmt.Sscan(n, &pages); err != nil {
				t.Fatal(err)
			}
		}
	}
	if least := 3; pages < least || pages > len(sheets)+1 { // nine elevations take three
		t.Errorf("%d sheets are printed on %d pages", len(sheets), pages)
	}
	if !strings.Contains(string(out), "A3") {
		t.Errorf("pages are not A3:\n%s", out)
	}
}
