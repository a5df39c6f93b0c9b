//go:build !linux

package sqlite

// networkFileSystem names the network file system that holds path, if any:
// here nobody looks.
func networkFileSystem(string) string { return "" }
