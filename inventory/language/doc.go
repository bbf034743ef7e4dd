// SPDX-License-Identifier: Apache-2.0

// Package language evaluates the HCL of a site: it reads the files, orders the
// blocks by their references, repeats those with for_each or count, and checks
// every attribute against a Spec. It knows no block by name: the caller's specs
// say which there are. Evaluation is bounded by Limits and reads files only
// through the file system that it is given.
package language

// Limits bound one evaluation; past a limit there is a diagnostic. A zero field
// takes its default.
type Limits struct {
	FileBytes  int   // largest file that is read; default 16 MiB
	TotalBytes int   // of all files of the language; default 64 MiB
	Tokens     int   // words, numbers and signs of all files; default 2,000,000
	Nesting    int   // brackets within brackets; default 200
	Chain      int   // operators of one expression; default 4,000
	Instances  int   // things by for_each and count, in all; default 200,000
	Iterations int   // of for and splat expressions, and function calls, in all; default 2,000,000
	Output     int64 // bytes that templates and functions produce, in all; default 256 MiB
	Elements   int   // of one local value, all levels together; default 2,000,000
}

func (l Limits) withDefaults() Limits {
	setInt(&l.FileBytes, 16<<20)
	setInt(&l.TotalBytes, 64<<20)
	setInt(&l.Tokens, 2_000_000)
	setInt(&l.Nesting, 200)
	setInt(&l.Chain, 4000)
	setInt(&l.Instances, 200_000)
	setInt(&l.Iterations, 2_000_000)
	setInt(&l.Elements, 2_000_000)
	if l.Output == 0 {
		l.Output = 256 << 20
	}
	return l
}

func setInt(v *int, def int) {
	if *v == 0 {
		*v = def
	}
}
