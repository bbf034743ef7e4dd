package recognise

import (
	"os"
	"testing"
)

// TestListAndTree: lspci is often run twice, as a list and as a tree, which are
// two outputs.
func TestListAndTree(t *testing.T) {
	t.Parallel()
	var file []byte
	for _, name := range []string{"lspci.plain.txt", "lspci.tree.txt", "mlxlink.txt"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		file = append(append(file, data...), '\n')
	}
	r, err := Read("f", file)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{r.Kind: 1}
	for _, o := range r.Others {
		count[o.Kind]++
	}
	if len(count) != 2 || count["lspci"] != 2 || count["mlxlink"] != 1 {
		t.Errorf("read were %v", count)
	}
}
