// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var _ = flag.Bool("update", false, "accepted for all packages; there are no golden files here")

const (
	sum1 = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	sum2 = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// whole is a lock file with every record.
const whole = `ironrail.lock 1
# Written by ` + "`ironrail lock`" + `. Keep it in git; do not edit it.
address storage r01-u01/storage/0 10.200.0.1/31
address storage r01/leaf-1 10.203.224.0/32
address v6 n1/rail/0 fd00::1/127
closure rdma os ` + sum1 + `
image os ` + sum1 + ` ` + sum2 + `
package rdma os libibverbs1 44.0-2 amd64 ` + sum2 + `
package rdma os rdma-core 44.0-2 amd64 ` + sum1 + `
`

func TestWhatIsReadIsWritten(t *testing.T) {
	t.Parallel()
	l, found := Parse([]byte(whole))
	if len(found) > 0 {
		t.Fatal(found)
	}
	if got := string(l.Bytes()); got != whole {
		t.Errorf("got\n%s\nwant\n%s", got, whole)
	}
	if len(l.Addresses) != 3 || l.Addresses[0].Prefix.String() != "10.200.0.1/31" || l.Addresses[0].At.Line != 3 {
		t.Errorf("addresses %+v", l.Addresses)
	}
	if i, ok := l.Image("os"); !ok || i.Digest != sum2 || i.Inputs != sum1 {
		t.Errorf("image %+v", i)
	}
	if c, ok := l.Closure("rdma", "os"); !ok || len(c.Packages) != 2 || c.Inputs != sum1 {
		t.Errorf("closure %+v", c)
	}
	if at := l.Addresses[1].At.Range(); whole[at.Start.Byte:at.End.Byte] != "address storage r01/leaf-1 10.203.224.0/32" {
		t.Errorf("place %v", at)
	}
}

// TestOrderOfLinesMeansNothing: a merge may leave lines anywhere.
func TestOrderOfLinesMeansNothing(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(whole, "\n")
	body := lines[2 : len(lines)-1]
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(body), func(i, j int) { body[i], body[j] = body[j], body[i] })
	l, found := Parse([]byte(lines[0] + strings.Join(body, "") + "\n# a comment\n"))
	if len(found) > 0 || string(l.Bytes()) != whole {
		t.Errorf("%v\n%s", found, l.Bytes())
	}
	if l, found := Parse([]byte(strings.ReplaceAll(whole, "\n", "\r\n"))); len(found) > 0 || string(l.Bytes()) != whole {
		t.Errorf("with CRLF: %v", found)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	head := "ironrail.lock 1\n"
	for _, c := range []struct{ name, text, check, at, says string }{
		{"empty", "", "lock.syntax", "1,1-1", "first line"},
		{"another file", "{\n}\n", "lock.syntax", "1,1-2", "first line"},
		{"newer", "ironrail.lock 2\naddress quantum\n", "lock.version", "1,15-16", "format 2"},
		{"merge conflict", head + "<<<<<<< HEAD\naddress a b 10.0.0.1/31\n=======\naddress a b 10.0.0.3/31\n>>>>>>> other\n", "lock.syntax", "2,1-8", "3 lines that git left"},
		{"unknown record", head + "adress a b 10.0.0.1/31\n", "lock.syntax", "2,1-23", `"adress a b`},
		{"too many words", head + "address a b c d e f g h i j 10.0.0.1/31\n", "lock.syntax", "2,1-40", "no record"},
		{"two blanks", head + "address a  b 10.0.0.1/31\n", "lock.syntax", "2,1-25", "one blank"},
		{"wrong address", head + "address a b 10.0.0.300/31\n", "lock.syntax", "2,13-26", `"10.0.0.300/31"`},
		{"no length", head + "address a b 10.0.0.3\n", "lock.syntax", "2,13-21", `"10.0.0.3"`},
		{"wrong digest", head + "image a " + sum1 + " sha256:12\n", "lock.syntax", "2,81-90", `"sha256:12"`},
		{"one owner twice", head + "address a b 10.0.0.1/31\naddress a b 10.0.0.3/31\n", "lock.duplicate", "3,1-24", "Lines 2 and 3 are both for b of fabric a"},
		{"one image twice", head + "image a " + sum1 + " " + sum2 + "\nimage a " + sum1 + " " + sum1 + "\n", "lock.duplicate", "3,1-152", "Lines 2 and 3"},
		{"one package twice", head + "package d i p 1 all " + sum1 + "\npackage d i p 2 all " + sum1 + "\n", "lock.duplicate", "3,1-92", "package p of driver d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, found := Parse([]byte(c.text))
			if len(found) != 1 || found[0].Check != c.check || !strings.Contains(found[0].Detail, c.says) {
				t.Fatalf("%+v", found)
			}
			if at := found[0].Subject.String(); at != File+":"+c.at {
				t.Errorf("at %s, want %s", at, c.at)
			}
			if len(strings.Fields(found[0].Summary)) >= 8 {
				t.Errorf("the summary is long: %q", found[0].Summary)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if changed, err := new(Lock).Write(dir); changed || err != nil {
		t.Errorf("an empty lock makes a file: %v, %v", changed, err)
	}
	l, _ := Parse([]byte(whole))
	for i, want := range []bool{true, false} {
		if changed, err := l.Write(dir); changed != want || err != nil {
			t.Errorf("write %d: %v, %v", i, changed, err)
		}
	}
	path := filepath.Join(dir, File)
	if b, err := os.ReadFile(path); err != nil || string(b) != whole {
		t.Errorf("%v\n%s", err, b)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v", entries)
	}
	if _, err := l.Write(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

func TestMoved(t *testing.T) {
	t.Parallel()
	a := []Package{{Name: "a", Version: "1", Arch: "all", Digest: sum1}, {Name: "b", Version: "1", Arch: "all", Digest: sum1}}
	for _, c := range []struct {
		name string
		have []Package
		want string
	}{
		{"same in another order", []Package{a[1], a[0]}, ""},
		{"newer", []Package{a[0], {Name: "b", Version: "2", Arch: "all", Digest: sum2}}, "b 1 became 2"},
		{"rebuilt", []Package{a[0], {Name: "b", Version: "1", Arch: "all", Digest: sum2}}, "b 1 has other content"},
		{"gone", a[:1], "b 1 is gone"},
		{"new", append([]Package{{Name: "c", Version: "3", Arch: "all", Digest: sum1}}, a...), "c 3 is new"},
		{"first gone", a[1:], "a 1 is gone"},
	} {
		if got := Moved(a, c.have); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMoves(t *testing.T) {
	t.Parallel()
	m := Moves{"n1": "n2", "n2": "n3", "x": "y", "y": "x", "r01/leaf-1": "r02/leaf-9"}
	for from, want := range map[string]string{"n1/rail/0": "n3/rail/0", "n2": "n3", "n3/rail/0": "n3/rail/0", "n11/rail/0": "n11/rail/0", "r01/leaf-1/17": "r02/leaf-9/17", "r01/leaf-10/1": "r01/leaf-10/1"} {
		if got := m.Now(from); got != want {
			t.Errorf("%s is now %s, want %s", from, got, want)
		}
	}
	m.Now("x/rail/0") // ends
}

var testPools = []Pool{
	{What: "rail 0", Prefix: netip.MustParsePrefix("10.0.0.0/29"), Link: true},
	{What: "switch links", Prefix: netip.MustParsePrefix("10.0.0.8/29"), Link: true, Most: 2},
	{What: "loopbacks", Prefix: netip.MustParsePrefix("10.0.0.12/30")},
}

func entry(line int32, owner, prefix string) Address {
	return Address{Fabric: "f", Owner: owner, Prefix: netip.MustParsePrefix(prefix), At: Place{Line: line}}
}

func TestAllocate(t *testing.T) {
	t.Parallel()
	wants := []Want{{"n10/r/0", 0}, {"n9/r/0", 0}, {"leaf/1", 1}, {"leaf", 2}}
	for _, c := range []struct {
		name    string
		entries []Address
		moves   Moves
		want    []string // of the wants
		fresh   int
		why     []string // of conflicts
		stale   int
		moved   int
	}{
		{"from nothing, in the order of people", nil, nil, []string{"10.0.0.3/31", "10.0.0.1/31", "10.0.0.9/31", "10.0.0.12/32"}, 4, nil, 0, 0},
		{"what is locked stays", []Address{entry(3, "n10/r/0", "10.0.0.5/31"), entry(4, "leaf", "10.0.0.15/32")}, nil, []string{"10.0.0.5/31", "10.0.0.1/31", "10.0.0.9/31", "10.0.0.15/32"}, 2, nil, 0, 0},
		{"what is gone stays taken", []Address{entry(3, "gone/r/0", "10.0.0.1/31")}, nil, []string{"10.0.0.5/31", "10.0.0.3/31", "10.0.0.9/31", "10.0.0.12/32"}, 4, nil, 1, 0},
		{"a move takes its address along", []Address{entry(3, "old/r/0", "10.0.0.7/31")}, Moves{"old": "n9"}, []string{"10.0.0.1/31", "10.0.0.7/31", "10.0.0.9/31", "10.0.0.12/32"}, 3, nil, 0, 1},
		{"a move to one that has its own", []Address{entry(3, "old/r/0", "10.0.0.7/31"), entry(4, "n9/r/0", "10.0.0.5/31")}, Moves{"old": "n9"}, []string{"10.0.0.1/31", "10.0.0.5/31", "10.0.0.9/31", "10.0.0.12/32"}, 3, nil, 1, 0},
		{"a move of one that is still there", []Address{entry(3, "n10/r/0", "10.0.0.7/31")}, Moves{"n10": "n9"}, []string{"10.0.0.7/31", "10.0.0.1/31", "10.0.0.9/31", "10.0.0.12/32"}, 3, nil, 0, 0},
		{"outside", []Address{entry(3, "n10/r/0", "10.9.0.1/31")}, nil, []string{"10.0.0.3/31", "10.0.0.1/31", "10.0.0.9/31", "10.0.0.12/32"}, 3, []string{"is not in 10.0.0.0/29, rail 0"}, 0, 0},
		{"in the part of others", []Address{entry(3, "leaf/1", "10.0.0.13/31")}, nil, []string{"10.0.0.3/31", "10.0.0.1/31", "10.0.0.9/31", "10.0.0.12/32"}, 3, []string{"is not in the part of switch links"}, 0, 0},
		{"upper end", []Address{entry(3, "n10/r/0", "10.0.0.4/31")}, nil, []string{"10.0.0.3/31", "10.0.0.1/31", "10.0.0.9/31", "10.0.0.12/32"}, 3, []string{"is the address of the upper end of a link"}, 0, 0},
		{"wrong length", []Address{entry(3, "n10/r/0", "10.0.0.5/30")}, nil, []string{"10.0.0.3/31", "10.0.0.1/31", "10.0.0.9/31", "10.0.0.12/32"}, 3, []string{"has a network of length /30, not /31"}, 0, 0},
		{"two of one address: the first line stays", []Address{entry(4, "n10/r/0", "10.0.0.5/31"), entry(3, "n9/r/0", "10.0.0.5/31")}, nil, []string{"10.0.0.1/31", "10.0.0.5/31", "10.0.0.9/31", "10.0.0.12/32"}, 2, []string{"is that of n9/r/0 as well"}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Allocate(testPools, wants, c.entries, c.moves)
			var have, why []string
			for _, p := range got.Prefixes {
				have = append(have, p.String())
			}
			for _, r := range got.Replaced {
				why = append(why, r.Why)
			}
			if !slices.Equal(have, c.want) || !slices.Equal(why, c.why) {
				t.Errorf("got %v, %q", have, why)
			}
			if len(got.Fresh) != c.fresh || len(got.Stale) != c.stale || len(got.Moved) != c.moved || len(got.Shortages) != 0 {
				t.Errorf("fresh %d, stale %d, moved %d, shortages %v", len(got.Fresh), len(got.Stale), len(got.Moved), got.Shortages)
			}
		})
	}
}

// TestOneOwnerTwice: two cables in one port are a mistake that a site may allow;
// the lock has one entry of it.
func TestOneOwnerTwice(t *testing.T) {
	t.Parallel()
	wants := []Want{{"n1/r/0", 0}, {"n1/r/0", 0}, {"n2/r/0", 0}}
	for _, entries := range [][]Address{nil, {entry(3, "n1/r/0", "10.0.0.1/31")}} {
		got := Allocate(testPools, wants, entries, nil)
		if got.Prefixes[0].String() != "10.0.0.1/31" || got.Prefixes[1].IsValid() || got.Prefixes[2].String() != "10.0.0.3/31" || len(got.Shortages)+len(got.Replaced) > 0 {
			t.Errorf("%v, %+v", got.Prefixes, got.Shortages)
		}
	}
}

// TestAMovedEntryThatCannotBe names the owner as it is called now.
func TestAMovedEntryThatCannotBe(t *testing.T) {
	t.Parallel()
	got := Allocate(testPools, []Want{{"n2/r/0", 0}}, []Address{entry(3, "n1/r/0", "10.9.0.1/31")}, Moves{"n1": "n2"})
	if len(got.Replaced) != 1 || got.Replaced[0].Owner != "n2/r/0" || len(got.Moved) != 1 || got.Moved[0].Owner != "n2/r/0" || got.Prefixes[0].String() != "10.0.0.1/31" {
		t.Errorf("%+v", got)
	}
}

func TestAShortageSaysHowMuch(t *testing.T) {
	t.Parallel()
	var wants []Want
	for i := range 6 {
		wants = append(wants, Want{fmt.Sprintf("n%d/r/0", i), 0})
	}
	wants = append(wants, Want{"l/1", 1}, Want{"l/2", 1}, Want{"l/3", 1})
	got := Allocate(testPools, wants, []Address{entry(3, "gone/r/0", "10.0.0.3/31")}, nil)
	want := []Shortage{{Pool: testPools[0], Need: 7, Room: 4, Stale: 1}, {Pool: testPools[1], Need: 3, Room: 2}}
	if !reflect.DeepEqual(got.Shortages, want) {
		t.Errorf("%+v", got.Shortages)
	}
	if got.Prefixes[2].String() != "10.0.0.7/31" || got.Prefixes[3].IsValid() {
		t.Errorf("%v", got.Prefixes)
	}
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	pool := []Pool{{What: "rail", Prefix: netip.MustParsePrefix("fd00:0:0:1::/64"), Link: true}}
	got := Allocate(pool, []Want{{"a", 0}, {"b", 0}}, []Address{entry(3, "a", "fd00:0:0:1:7fff::1/127")}, nil)
	if got.Prefixes[0] != netip.MustParsePrefix("fd00:0:0:1:7fff::1/127") || got.Prefixes[1].String() != "fd00:0:0:1::1/127" {
		t.Errorf("%v", got.Prefixes)
	}
}

// TestNobodyIsRenumbered: whatever is added, taken away, and said in another
// order, who has an address keeps it, nobody has that of another, and all lie in
// their pools.
func TestNobodyIsRenumbered(t *testing.T) {
	t.Parallel()
	pools := []Pool{
		{What: "rail 0", Prefix: netip.MustParsePrefix("10.0.0.0/24"), Link: true},
		{What: "rail 1", Prefix: netip.MustParsePrefix("10.0.1.0/24"), Link: true},
		{What: "links", Prefix: netip.MustParsePrefix("10.0.2.0/23"), Link: true, Most: 224},
		{What: "loopbacks", Prefix: netip.MustParsePrefix("10.0.3.192/26")},
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		site := map[string]Want{}
		kept := map[string]netip.Prefix{}
		var locked []Address
		for step := range 25 {
			for range r.IntN(12) {
				pool := r.IntN(4)
				owner := fmt.Sprintf("n%d/p%d/0", r.IntN(60), pool)
				if r.IntN(3) == 0 {
					delete(site, owner)
				} else {
					site[owner] = Want{owner, pool}
				}
			}
			var wants []Want
			for _, w := range site { // in the order of a map: another one each time
				wants = append(wants, w)
			}
			got := Allocate(pools, wants, locked, nil)
			if len(got.Shortages)+len(got.Replaced) > 0 {
				t.Fatalf("seed %d step %d: %+v %+v", seed, step, got.Shortages, got.Replaced)
			}
			taken := map[netip.Addr]string{}
			next := &Lock{}
			for i, w := range wants {
				p := got.Prefixes[i]
				if was, ok := kept[w.Owner]; ok && was != p {
					t.Fatalf("seed %d step %d: %s had %s and has %s", seed, step, w.Owner, was, p)
				}
				kept[w.Owner] = p
				for _, a := range both(p) {
					if other := taken[a]; other != "" || !pools[w.Pool].Prefix.Contains(a) {
						t.Fatalf("seed %d step %d: %s of %s is that of %q, or not in %s", seed, step, a, w.Owner, other, pools[w.Pool].Prefix)
					}
					taken[a] = w.Owner
				}
				next.Addresses = append(next.Addresses, Address{Fabric: "f", Owner: w.Owner, Prefix: p})
			}
			next.Addresses = append(next.Addresses, got.Stale...)
			back, found := Parse(next.Bytes())
			if len(found) > 0 {
				t.Fatal(found)
			}
			locked = back.Of("f")
			r.Shuffle(len(locked), func(i, j int) { locked[i], locked[j] = locked[j], locked[i] })
		}
	}
}

// both are the addresses of a link, or the one of a loopback.
func both(p netip.Prefix) []netip.Addr {
	if p.Bits() == p.Addr().BitLen() {
		return []netip.Addr{p.Addr()}
	}
	return []netip.Addr{p.Masked().Addr(), p.Masked().Addr().Next()}
}

// FuzzParse: whatever the text, there is a lock or a finding with a place in the
// text; a lock that is read is written so that it is read the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("ironrail.lock 1\n<<<<<<< a\n=======\n>>>>>>> b\n"))
	f.Add([]byte("ironrail.lock 99\n"))
	f.Add([]byte("ironrail.lock 1\npackage d i p 2 all sha256:é\x00\xff\naddress \x1b[31m b ::ffff:1.2.3.4/128"))
	f.Fuzz(func(t *testing.T, src []byte) {
		l, found := Parse(src)
		for _, d := range found {
			if d.Subject.Start.Byte < 0 || d.Subject.End.Byte > len(src) || d.Subject.Start.Byte > d.Subject.End.Byte || d.Subject.Start.Line < 1 {
				t.Fatalf("%q: %v", src, d.Subject)
			}
		}
		if len(found) > 0 {
			return
		}
		text := l.Bytes()
		again, found := Parse(text)
		if len(found) > 0 || string(again.Bytes()) != string(text) {
			t.Fatalf("%q is written as %q: %v", src, text, found)
		}
	})
}

// many is a lock file of n addresses.
func many(n int) []byte {
	l := &Lock{}
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 15), byte(i >> 7), byte(i<<1 | 1)})
		l.Addresses = append(l.Addresses, Address{Fabric: "storage", Owner: fmt.Sprintf("r%04d-u%02d/rail/%d", i/64, i/8%8, i%8), Prefix: netip.PrefixFrom(a, 31)})
	}
	return l.Bytes()
}

func BenchmarkParse300k(b *testing.B) {
	src := many(300_000)
	for b.Loop() {
		if _, found := Parse(src); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

func BenchmarkAllocate300k(b *testing.B) {
	l, _ := Parse(many(300_000))
	pool := []Pool{{What: "links", Prefix: netip.MustParsePrefix("10.0.0.0/8"), Link: true}}
	wants := make([]Want, len(l.Addresses))
	for i, a := range l.Addresses {
		wants[i].Owner = a.Owner
	}
	b.Run("locked", func(b *testing.B) {
		for b.Loop() {
			Allocate(pool, wants, l.Addresses, nil)
		}
	})
	b.Run("fresh", func(b *testing.B) {
		for b.Loop() {
			Allocate(pool, wants, nil, nil)
		}
	})
}

// TestManyLinesAreReadAtOnce holds a generous bound: what compares each line with each
// takes minutes. The benchmark has the figure, which a loaded machine multiplies.
func TestManyLinesAreReadAtOnce(t *testing.T) {
	t.Parallel()
	src := many(300_000)
	start := time.Now()
	if _, found := Parse(src); len(found) > 0 {
		t.Fatal(found)
	}
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("300,000 lines take %s", took)
	}
}
