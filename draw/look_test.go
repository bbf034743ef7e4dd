package draw

import (
	"os"
	"testing"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
)

func TestLook(t *testing.T) {
	dir := os.Getenv("LOOK")
	if dir == "" {
		t.Skip()
	}
	put := func(name string, inv *inventory.Inventory, p *power.Plan, o Options, f func(d *Drawing) []svg.Sheet) {
		d := New(inv, p, o)
		sheets := f(d)
		w, _ := os.Create(dir + "/" + name + ".svg")
		defer w.Close()
		if err := svg.Write(w, name, sheets, d.Defs()); err != nil {
			t.Fatal(err)
		}
	}
	racks := func(d *Drawing) []svg.Sheet { return d.Racks() }
	i, p := oneRack()
	put("one", i, p, Options{}, racks)
	put("one-rear", i, p, Options{Side: Rear, Serials: true, Errors: 2}, racks)
	i, p = trayRack()
	put("tray", i, p, Options{}, racks)
	i, p = hall(400)
	put("hall", i, p, Options{}, func(d *Drawing) []svg.Sheet { return d.Hall() })
	put("row", i, p, Options{}, func(d *Drawing) []svg.Sheet { return d.Rows("3") })
}

func TestLookPower(t *testing.T) {
	dir := os.Getenv("LOOK")
	if dir == "" {
		t.Skip()
	}
	for name, site := range map[string]func() (*inventory.Inventory, *power.Plan){"one": oneRack, "tray": trayRack, "hall": func() (*inventory.Inventory, *power.Plan) { return hall(30) }} {
		i, p := site()
		d := New(i, p, Options{})
		sheets := d.Power()
		w, _ := os.Create(dir + "/power-" + name + ".svg")
		defer w.Close()
		if err := svg.Write(w, name, sheets, d.Defs()); err != nil {
			t.Fatal(err)
		}
	}
}
