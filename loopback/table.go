package loopback

// Mounted is something that is mounted, as the system lists it. On systems
// other than Linux there is no more than Dir, Type and Source.
type Mounted struct {
	ID           int // of the mount, in this mount namespace
	Major, Minor uint32
	Dir          string
	Type         string
	Source       string
	flags        []string // of the mount, not of its file system
}

// Is tells whether m is what a plan mounts.
func (m *Mounted) Is(p *Plan) bool {
	return p.System != "linux" || m.Type == p.Type && m.Source == p.Source
}
