package memstore

import (
	"slices"
	"strings"
)

// MaxStreams bounds the named streams of one inode.
const MaxStreams = 4096

// stream is a named stream of a file or directory, as SMB has them: data beside its
// own, with its own opens, share modes and locks. It is an inode that no directory
// names: its home is the one that has it, with which it goes.
type stream struct {
	name  string
	inode *Inode
}

// StreamInfo describes a stream.
type StreamInfo struct {
	Name       string
	Size, Used int64
}

// StreamArgs say how to open a stream.
type StreamArgs struct {
	Open   OpenArgs
	Create bool // if there is none
	Fail   bool // ErrExist if there is one
	Empty  bool // it loses what it has; Open has AccessWrite
}

// OpenStream opens a stream by its name, without regard to case. What the caller may
// do is what it may with the inode that has it, and for the caller to find out.
// ErrNotExist if there is none. made says that it was made.
func (i *Inode) OpenStream(c *Caller, name string, a StreamArgs) (o *Open, made bool, err error) {
	i.mu.Lock()
	o, made, err = i.openStream(c, name, a)
	i.mu.Unlock()
	if err == nil && made {
		i.streamChanged(WatchStreamName, WatchEvent{Action: WatchStreamAdded, Stream: name})
	}
	if err == nil && !made && a.Empty {
		if _, err = o.inode.SetAttr(c, o, &SetAttr{Mask: SetSize}); err != nil {
			o.Close()
			return nil, false, err
		}
	}
	return o, made, err
}

// openStream is called with i.mu held for writing.
func (i *Inode) openStream(c *Caller, name string, a StreamArgs) (*Open, bool, error) {
	if i.dead {
		return nil, false, ErrStale
	}
	if err := checkName(name); err != nil {
		return nil, false, err
	}
	x := i.x
	if n := x.stream(name); n >= 0 {
		if a.Fail {
			return nil, false, ErrExist
		}
		s := x.streams[n].inode
		s.mu.Lock()
		defer s.mu.Unlock()
		o, err := s.open(c, a.Open)
		return o, false, err
	}
	switch {
	case !a.Create:
		return nil, false, ErrNotExist
	case x != nil && len(x.streams) >= MaxStreams:
		return nil, false, ErrNoSpace
	}
	cost := int64(dentryCost + len(name))
	if !i.s.charge(cost) {
		return nil, false, ErrNoSpace
	}
	t := now()
	s, err := i.s.newInode(TypeFile, 0o600, i.uid, i.gid, t)
	if err != nil {
		i.s.uncharge(cost)
		return nil, false, err
	}
	s.nlink, s.home, s.stream = 1, i, true
	o, _ := s.open(c, a.Open) // nobody else sees it yet
	i.s.table.put(s)
	x = i.extra()
	x.streams = append(x.streams, stream{strings.Clone(name), s})
	i.begin(t)
	return o, true, nil
}

// stream is the index of a stream, or -1. x may be nil.
func (x *extra) stream(name string) int {
	if x == nil {
		return -1
	}
	key := foldName(name)
	return slices.IndexFunc(x.streams, func(s stream) bool { return foldName(s.name) == key })
}

// Streams lists the streams in the order in which they were made.
func (i *Inode) Streams() []StreamInfo {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.x == nil {
		return nil
	}
	var all []StreamInfo
	for _, s := range i.x.streams {
		s.inode.mu.RLock()
		all = append(all, StreamInfo{s.name, s.inode.size, s.inode.data.Bytes()})
		s.inode.mu.RUnlock()
	}
	return all
}

// StreamsOpen tells whether any stream is open.
func (i *Inode) StreamsOpen() bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.x == nil {
		return false
	}
	return slices.ContainsFunc(i.x.streams, func(s stream) bool {
		s.inode.mu.RLock()
		defer s.inode.mu.RUnlock()
		return s.inode.x != nil && len(s.inode.x.opens) > 0
	})
}

// StreamName is the name of the stream that is open; "" if that has none any more.
func (o *Open) StreamName() string {
	if !o.inode.stream {
		return ""
	}
	return o.inode.streamName()
}

// streamName is called without a lock.
func (s *Inode) streamName() string {
	s.home.mu.RLock()
	defer s.home.mu.RUnlock()
	if s.home.x != nil {
		for _, t := range s.home.x.streams {
			if t.inode == s {
				return t.name
			}
		}
	}
	return ""
}

// RenameStream gives the stream that o has open another name. ErrExist if another
// has it, unless that is to be replaced; ErrAccess if that one is open.
func (o *Open) RenameStream(name string, replace bool) error {
	s := o.inode
	if !s.stream {
		return ErrInvalid
	}
	if err := checkName(name); err != nil {
		return err
	}
	i := s.home
	i.mu.Lock()
	events, err := i.renameStream(s, name, replace)
	i.mu.Unlock()
	if len(events) > 0 {
		i.streamChanged(WatchStreamName, events...)
	}
	return err
}

// renameStream is called with i.mu held for writing.
func (i *Inode) renameStream(s *Inode, name string, replace bool) (events []WatchEvent, err error) {
	x := i.x
	if i.dead || x == nil {
		return nil, ErrStale
	}
	if n := x.stream(name); n >= 0 && x.streams[n].inode != s {
		other := x.streams[n].inode
		other.mu.RLock()
		used := other.x != nil && len(other.x.opens) > 0
		other.mu.RUnlock()
		switch {
		case !replace:
			return nil, ErrExist
		case used:
			return nil, ErrAccess
		}
		events = append(events, WatchEvent{Action: WatchStreamRemoved, Stream: x.streams[n].name})
		i.dropStream(n)
	}
	n := slices.IndexFunc(x.streams, func(t stream) bool { return t.inode == s })
	if n < 0 {
		return events, ErrStale
	}
	old := x.streams[n].name
	grow := int64(len(name) - len(old))
	if grow > 0 && !i.s.charge(grow) {
		return events, ErrNoSpace
	}
	if grow < 0 {
		i.s.uncharge(-grow)
	}
	x.streams[n].name = strings.Clone(name)
	i.begin(now())
	return append(events, WatchEvent{Action: WatchStreamRemoved, Stream: old}, WatchEvent{Action: WatchStreamAdded, Stream: name}), nil
}

// dropStream takes a stream away; who has it open keeps it. Called with i.mu held
// for writing.
func (i *Inode) dropStream(n int) {
	s := i.x.streams[n]
	i.x.streams = slices.Delete(i.x.streams, n, n+1)
	cost := int64(dentryCost + len(s.name))
	i.s.uncharge(cost)
	i.s.reaper.dropped(cost)
	s.inode.orphaned()
}

// orphaned is what becomes of a stream that nothing has any more.
func (s *Inode) orphaned() {
	s.mu.Lock()
	s.nlink = 0
	cut := s.bury()
	if !s.dead {
		s.s.orphan.Add(1)
	}
	s.mu.Unlock()
	s.s.release(cut)
}

// removeStream takes a stream away after its last open has been closed.
func (i *Inode) removeStream(s *Inode) {
	i.mu.Lock()
	name := "" // no stream's
	if i.x != nil {
		if n := slices.IndexFunc(i.x.streams, func(t stream) bool { return t.inode == s }); n >= 0 {
			name = i.x.streams[n].name
			i.dropStream(n)
			i.begin(now())
		}
	}
	i.mu.Unlock()
	if name != "" {
		i.streamChanged(WatchStreamName, WatchEvent{Action: WatchStreamRemoved, Stream: name})
	}
}

// DropStreams takes all streams away, as when a file is replaced.
func (i *Inode) DropStreams() {
	i.mu.Lock()
	var events []WatchEvent
	if i.x != nil {
		for n := len(i.x.streams) - 1; n >= 0; n-- {
			events = append(events, WatchEvent{Action: WatchStreamRemoved, Stream: i.x.streams[n].name})
			i.dropStream(n)
		}
	}
	i.mu.Unlock()
	if len(events) > 0 {
		i.streamChanged(WatchStreamName, events...)
	}
}
