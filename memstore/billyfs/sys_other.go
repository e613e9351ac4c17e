//go:build !linux && !darwin

package billyfs

func (i *FileInfo) sys() any { return &i.attr }
