// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strconv"

	"github.com/ironrail/ironrail/draw/cost"
	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/fabric/cable"
)

// style is the only style of the page: its text on the screen, and how it is
// printed. Drawings need none of it.
const style = `
@page { size: A3 landscape; margin: 10mm }
html { color-scheme: light }
body { margin: 0; padding: 12px 16px; background: #fff; color: #1b1f24; font: 14px/1.45 Arial, "Liberation Sans", Helvetica, "DejaVu Sans", sans-serif }
h1 { font-size: 28px; margin: 8px 0 4px }
h2 { font-size: 18px; margin: 22px 0 8px }
p { margin: 4px 0 }
a { color: #0b5394 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid #d0d7de; vertical-align: top }
td.n, th.n { text-align: right }
thead { display: table-header-group }
tr { break-inside: avoid }
.bad { color: #8b0a14; font-weight: bold }
.contents { columns: 4 260px; list-style: none; padding: 0; margin: 0 }
.contents li { break-inside: avoid; overflow-wrap: anywhere }
.sheet { margin: 0 0 36px; scroll-margin-top: 8px }
.sheet svg { display: block; max-width: 100%; height: auto }
.back { margin: 2px 0 0; font-size: 12px }
@media print {
  body { padding: 0 }
  .sheet { break-inside: avoid; margin: 0 0 24px }
  .sheet svg { max-height: 272mm }
  .back { display: none }
  a { color: inherit; text-decoration: none }
}
`

// contentPolicy returns the content security policy of the page (CSP Level 3): it loads
// nothing, runs nothing, and has no other style.
func contentPolicy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page writes HTML and keeps the first error of its writer.
type page struct {
	w *bufio.Writer
}

func (p *page) raw(s string)  { _, _ = p.w.WriteString(s) } // bufio keeps the error for Flush
func (p *page) text(s string) { p.raw(svg.EscapeText(s)) }

// All is every sheet of the site, in the order of the page. What was drawn
// before must not be written with it: its shapes and links are those of the page.
func (d *Drawing) All() []svg.Sheet {
	d.linked = true
	defer func() { d.linked = false }()
	sheets := d.Hall()
	sheets = append(sheets, d.Rows()...)
	sheets = append(sheets, d.Racks()...)
	sheets = append(sheets, d.Power()...)
	return append(sheets, d.Maps()...)
}

// HTML writes one page with the numbers of the site, these sheets and the bill
// of cables, which may be empty. It needs no script, no network and no file
// beside it. No sheet is cut by the end of a page: large ones have a page each,
// small ones share.
func (d *Drawing) HTML(w io.Writer, sheets []svg.Sheet, bill []cable.Item) error {
	p := &page{w: bufio.NewWriterSize(w, 1<<16)}
	p.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	p.raw(`<meta http-equiv="Content-Security-Policy" content="` + contentPolicy() + "\">\n")
	p.raw("<meta name=\"viewport\" content=\"width=device-width\">\n<title>Site ")
	p.text(d.inv.Site.Name)
	p.raw("</title>\n<style>" + style + "</style>\n</head>\n<body>\n")
	if err := d.defs.Shapes(p.w); err != nil {
		return err
	}
	d.summary(p)
	d.contents(p, sheets, len(bill) > 0)
	for _, s := range sheets {
		p.raw(`<section class="sheet" id="` + s.ID + `">`)
		for _, a := range s.Anchors {
			p.raw(`<span id="` + a + `"></span>`)
		}
		p.raw("\n")
		inner := s
		inner.ID += "-svg"
		if err := inner.Inline(p.w); err != nil {
			return err
		}
		p.raw("<p class=\"back\"><a href=\"#contents\">Contents</a></p>\n</section>\n")
	}
	p.bill(bill)
	p.prices(d.cost)
	p.raw("</body>\n</html>\n")
	return p.w.Flush()
}

// summary writes what the site has in numbers.
func (d *Drawing) summary(p *page) {
	s := d.inv.Summary()
	p.raw("<header>\n<h1>Site ")
	p.text(d.inv.Site.Name)
	p.raw("</h1>\n<p>")
	p.text(formatCount(s.Racks, "rack", "racks") + " · " + formatCount(s.Nodes, "node", "nodes") + " · " + formatCount(s.GPUs, "GPU", "GPUs") + " · " +
		formatCount(s.Switches, "switch", "switches") + " · " + formatCount(s.Cables, "cable", "cables"))
	p.raw("</p>\n")
	if d.opt.Errors > 0 {
		p.raw(`<p class="bad">`)
		p.text("check found " + formatCount(d.opt.Errors, "error", "errors") + " in this site: it is not to be built from this page.")
		p.raw("</p>\n")
	}
	t := d.total()
	p.raw("<p>")
	p.text("Power: " + formatWatts(t.Max) + " at most, " + formatWatts(t.Typical) + " typical.")
	for _, f := range d.plan.Feeds {
		p.text(" Feed " + f.Name + ": " + gauge{value: float64(f.Load.Max), limit: float64(f.Limit), text: formatWatts(f.Load.Max), allowed: formatWatts(f.Limit)}.words() + ".")
	}
	p.raw("</p>\n")
	var over []string
	for _, r := range d.racks {
		if len(r.over()) > 0 {
			over = append(over, r.Name)
		}
	}
	if len(over) > 0 {
		p.raw(`<p class="bad">`)
		words := joinList(over[:min(len(over), 12)])
		if len(over) > 12 {
			words += " and " + formatThousands(len(over)-12) + " more"
		}
		p.text("Over a limit: " + words + ".")
		p.raw("</p>\n")
	}
	p.raw("</header>\n")
}

func (d *Drawing) contents(p *page, sheets []svg.Sheet, bill bool) {
	p.raw("<nav id=\"contents\">\n<h2>Contents</h2>\n<ul class=\"contents\">\n")
	item := func(id, title string) {
		p.raw(`<li><a href="#` + id + `">`)
		p.text(title)
		p.raw("</a></li>\n")
	}
	for _, s := range sheets {
		item(s.ID, s.Title)
	}
	if d.cost != nil {
		item("prices", "Prices")
	}
	if bill {
		item("bill", "Cables to order")
	}
	p.raw("</ul>\n</nav>\n")
}

// bill writes what cables and optics are ordered.
func (p *page) bill(items []cable.Item) {
	if len(items) == 0 {
		return
	}
	p.raw("<section class=\"sheet\" id=\"bill\">\n<h2>Cables to order</h2>\n<table>\n<thead><tr><th class=\"n\">Count</th><th class=\"n\">Spares</th><th>Part</th><th>Type</th><th class=\"n\">Length</th><th class=\"n\">Speed</th></tr></thead>\n<tbody>\n")
	for _, i := range items {
		part, length, speed := i.Part, "", ""
		if part == "" {
			part = "not known"
		}
		if i.Length > 0 {
			length = i.Length.String()
		} else if i.Type != "optic" {
			length = "not known"
		}
		if i.Speed > 0 {
			speed = i.Speed.String()
		}
		p.raw("<tr>")
		for j, v := range []string{strconv.Itoa(i.Count), strconv.Itoa(i.Spares), part, i.Type, length, speed} {
			if j == 2 || j == 3 {
				p.raw("<td>")
			} else {
				p.raw(`<td class="n">`)
			}
			p.text(v)
			p.raw("</td>")
		}
		p.raw("</tr>\n")
	}
	p.raw("</tbody>\n</table>\n<p class=\"back\"><a href=\"#contents\">Contents</a></p>\n</section>\n")
}

// prices writes what things cost, where the site says it.
func (p *page) prices(c *cost.Cost) {
	if c == nil {
		return
	}
	p.raw("<section class=\"sheet\" id=\"prices\">\n<h2>Prices, in ")
	p.text(c.Currency)
	p.raw("</h2>\n<table>\n<thead><tr><th class=\"n\">Count</th><th>What</th><th class=\"n\">Each</th><th class=\"n\">Together</th></tr></thead>\n<tbody>\n")
	row := func(count int, name, each, total string) {
		p.raw(`<tr><td class="n">` + strconv.Itoa(count) + "</td><td>")
		p.text(name)
		p.raw(`</td><td class="n">` + each + `</td><td class="n">` + total + "</td></tr>\n")
	}
	all := 0
	for _, l := range c.Lines {
		row(l.Count, l.Name, formatDecimals(l.Each, 2), formatThousands(int(l.Total())))
		all += l.Count
	}
	row(all, "together", "", formatThousands(int(c.Total)))
	for _, l := range c.Left {
		row(l.Count, l.Name, "not priced", "")
	}
	p.raw("</tbody>\n</table>\n<p class=\"back\"><a href=\"#contents\">Contents</a></p>\n</section>\n")
}
