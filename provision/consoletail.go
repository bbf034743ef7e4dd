package provision

import (
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/reach"
)

// tailOf is the console that was kept of a node's step that failed, unless the node
// has come further since.
func tailOf(r state.Reader, w control.Why) (*control.Console, error) {
	f, ok := reach.Facts(r)(install.ConsoleFact.Of(subject.OfNode(w.Node.Name)))
	if !ok || w.Node.Accepted {
		return nil, nil
	}
	t, err := install.ConsoleFact.Get(f)
	if err != nil {
		return nil, err
	}
	for _, x := range w.Steps {
		if x.ID == t.Step && x.State != state.StepIsDone && !t.At.Before(x.Started) {
			return &control.Console{Step: t.Step, At: t.At, Lines: t.Lines, Ref: t.Ref}, nil
		}
	}
	return nil, nil
}
