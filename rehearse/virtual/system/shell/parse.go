package shell

// Script is a script that was read and can be run many times.
type Script struct{ list list }

// list is and-or lists, one after another.
type list []andOr

// andOr is pipelines joined by && and ||; ops[i] stands before pipes[i+1].
type andOr struct {
	pipes []pipeline
	ops   []string
}

// pipeline is commands, each reading what the one before wrote.
type pipeline struct {
	not      bool
	commands []command
}

// command is a simple command or a compound one, with its redirections.
type command struct {
	words   []word
	assigns []assign
	redirs  []redirect

	body   list // of ( ) and { }
	sub    bool // ( ): changes of variables stay inside
	tests  []list
	thens  []list
	orElse list
	loop   string // variable of for
	over   []word
	kind   commandKind
}

type commandKind uint8

const (
	simple commandKind = iota
	group
	ifs
	loop
)

type assign struct {
	name  string
	value word
}

type redirect struct {
	fd     int
	op     string
	target word
}

// Parse reads a script. The error is an ErrSyntax. Scripts that were read lately
// are kept: all nodes of a site are sent the same.
func Parse(src string) (*Script, error) {
	if s := kept.get(src); s != nil {
		return s, nil
	}
	s, err := parse(src)
	if err == nil {
		kept.put(src, s)
	}
	return s, err
}

func parse(src string) (*Script, error) {
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: tokens}
	l, err := p.list()
	if err == nil && p.pos < len(p.tokens) {
		err = p.unexpected()
	}
	if err != nil {
		return nil, err
	}
	return &Script{l}, nil
}

type parser struct {
	tokens []token
	pos    int
	depth  int
}

// maxDepth bounds nesting.
const maxDepth = 64

func (p *parser) peek() token {
	if p.pos < len(p.tokens) {
		return p.tokens[p.pos]
	}
	return token{op: "end of file"}
}

func (p *parser) unexpected() error {
	t := p.peek()
	switch {
	case t.op == "\n":
		return syntax("newline unexpected")
	case t.op != "":
		return syntax("%s unexpected", t.op)
	}
	return syntax("word unexpected")
}

// op takes an operator when it is the next.
func (p *parser) op(ops ...string) (string, bool) {
	for _, op := range ops {
		if p.pos < len(p.tokens) && p.tokens[p.pos].op == op {
			p.pos++
			return op, true
		}
	}
	return "", false
}

// reserved reports whether the next token is that reserved word.
func (p *parser) reserved(words ...string) (string, bool) {
	t := p.peek()
	if t.op != "" || len(t.word) != 1 || t.word[0].quoted || t.word[0].kind != literal {
		return "", false
	}
	for _, w := range words {
		if t.word[0].text == w {
			return w, true
		}
	}
	return "", false
}

// take consumes a reserved word that must come.
func (p *parser) take(words ...string) (string, error) {
	w, ok := p.reserved(words...)
	if !ok {
		return "", p.unexpected()
	}
	p.pos++
	return w, nil
}

func (p *parser) newlines() {
	for {
		if _, ok := p.op("\n"); !ok {
			return
		}
	}
}

// list reads until something that no command begins with.
func (p *parser) list() (list, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, syntax("nested too deep")
	}
	defer func() { p.depth-- }()
	var l list
	for {
		for {
			if _, ok := p.op("\n"); !ok {
				break
			}
		}
		if _, end := p.reserved("then", "else", "elif", "fi", "do", "done", "}"); end || p.pos >= len(p.tokens) || p.peek().op == ")" {
			return l, nil
		}
		a, err := p.andOr()
		if err != nil {
			return nil, err
		}
		l = append(l, a)
		if _, ok := p.op(";", "\n"); !ok {
			if p.peek().op == "&" {
				return nil, syntax("commands in the background are not known")
			}
			return l, nil
		}
	}
}

func (p *parser) andOr() (a andOr, err error) {
	for {
		pl, err := p.pipeline()
		if err != nil {
			return a, err
		}
		a.pipes = append(a.pipes, pl)
		op, ok := p.op("&&", "||")
		if !ok {
			return a, nil
		}
		a.ops = append(a.ops, op)
		p.newlines()
	}
}

func (p *parser) pipeline() (pl pipeline, err error) {
	if _, ok := p.reserved("!"); ok {
		p.pos++
		pl.not = true
	}
	for {
		c, err := p.command()
		if err != nil {
			return pl, err
		}
		pl.commands = append(pl.commands, c)
		if _, ok := p.op("|"); !ok {
			return pl, nil
		}
		p.newlines()
	}
}

func (p *parser) command() (c command, err error) {
	word, _ := p.reserved("if", "for", "{")
	switch {
	case word == "if":
		c, err = p.ifs()
	case word == "for":
		c, err = p.loop()
	case word == "{":
		p.pos++
		c.kind = group
		if c.body, err = p.list(); err == nil {
			_, err = p.take("}")
		}
	case p.peek().op == "(":
		p.pos++
		c.kind, c.sub = group, true
		if c.body, err = p.list(); err == nil {
			if _, ok := p.op(")"); !ok {
				err = p.unexpected()
			}
		}
	default:
		return p.simple()
	}
	if err != nil {
		return c, err
	}
	for {
		ok, err := p.redirect(&c)
		if err != nil || !ok {
			return c, err
		}
	}
}

func (p *parser) ifs() (c command, err error) {
	c.kind = ifs
	for word := "if"; word != "fi"; {
		p.pos++ // if, elif or else
		if word == "else" {
			if c.orElse, err = p.list(); err != nil {
				return c, err
			}
			_, err = p.take("fi")
			return c, err
		}
		test, err := p.list()
		if err != nil {
			return c, err
		}
		if _, err = p.take("then"); err != nil {
			return c, err
		}
		then, err := p.list()
		if err != nil {
			return c, err
		}
		c.tests, c.thens = append(c.tests, test), append(c.thens, then)
		var ok bool
		if word, ok = p.reserved("elif", "else", "fi"); !ok {
			return c, p.unexpected()
		}
	}
	p.pos++
	return c, nil
}

func (p *parser) loop() (c command, err error) {
	p.pos++
	c.kind = loop
	t := p.peek()
	if t.op != "" || len(t.word) != 1 || t.word[0].kind != literal || t.word[0].quoted || nameLen(t.word[0].text) != len(t.word[0].text) {
		return c, syntax("Bad for loop variable")
	}
	c.loop = t.word[0].text
	p.pos++
	if _, err = p.take("in"); err != nil {
		return c, err
	}
	for p.pos < len(p.tokens) && p.peek().op == "" {
		c.over = append(c.over, p.tokens[p.pos].word)
		p.pos++
	}
	if _, ok := p.op(";", "\n"); !ok {
		return c, p.unexpected()
	}
	p.newlines()
	if _, err = p.take("do"); err != nil {
		return c, err
	}
	if c.body, err = p.list(); err == nil {
		_, err = p.take("done")
	}
	return c, err
}

func (p *parser) simple() (c command, err error) {
	for {
		if ok, err := p.redirect(&c); err != nil {
			return c, err
		} else if ok {
			continue
		}
		t := p.peek()
		if t.op != "" {
			break
		}
		p.pos++
		if a, ok := assignment(t.word); ok && len(c.words) == 0 {
			c.assigns = append(c.assigns, a)
			continue
		}
		c.words = append(c.words, t.word)
	}
	if len(c.words)+len(c.assigns)+len(c.redirs) == 0 {
		return c, p.unexpected()
	}
	return c, nil
}

func (p *parser) redirect(c *command) (bool, error) {
	t := p.peek()
	op, ok := p.op("<", ">", ">>", ">&")
	if !ok {
		return false, nil
	}
	fd := t.fd
	if fd < 0 {
		if fd = 1; op == "<" {
			fd = 0
		}
	}
	target := p.peek()
	if target.op != "" {
		return false, p.unexpected()
	}
	p.pos++
	c.redirs = append(c.redirs, redirect{fd: fd, op: op, target: target.word})
	return true, nil
}

// assignment reads name=value.
func assignment(w word) (assign, bool) {
	if len(w) == 0 || w[0].kind != literal || w[0].quoted {
		return assign{}, false
	}
	n := nameLen(w[0].text)
	if n == 0 || n >= len(w[0].text) || w[0].text[n] != '=' || w[0].text[0] >= '0' && w[0].text[0] <= '9' {
		return assign{}, false
	}
	value := append(word{{text: w[0].text[n+1:]}}, w[1:]...)
	return assign{name: w[0].text[:n], value: value}, true
}
