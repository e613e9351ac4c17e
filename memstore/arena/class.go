package arena

import "fmt"

// MaxPage is the size of the largest page in bytes.
const MaxPage = 64 << 10

// classes are the page sizes. The steps keep what a page has too much at an
// eighth on the average, and are all multiples of 32.
var classes = [...]uint32{
	64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896,
	1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096,
	5 << 10, 6 << 10, 7 << 10, 8 << 10, 9 << 10, 10 << 10,
	11 << 10, 12 << 10, 13 << 10, 14 << 10, 15 << 10, 16 << 10,
	18 << 10, 20 << 10, 22 << 10, 24 << 10, 26 << 10, 28 << 10, 30 << 10, 32 << 10,
	36 << 10, 40 << 10, 44 << 10, 48 << 10, 52 << 10, 56 << 10, 60 << 10, 64 << 10,
}

// smallClass is the class of sizes up to 4 KiB by 32 bytes, largeClass of the
// larger ones by 1 KiB.
var smallClass, largeClass = func() (small [4096/32 + 1]uint8, large [MaxPage/1024 + 1]uint8) {
	class := uint8(0)
	for n := range small {
		for int(classes[class]) < n*32 {
			class++
		}
		small[n] = class
	}
	for n := 4; n < len(large); n++ {
		for int(classes[class]) < n*1024 {
			class++
		}
		large[n] = class
	}
	return small, large
}()

func classOf(n int) int {
	if n < 1 || n > MaxPage {
		panic(fmt.Sprintf("arena: page of %d bytes", n))
	}
	if n <= 4096 {
		return int(smallClass[(n+31)/32])
	}
	return int(largeClass[(n+1023)/1024])
}

// ClassSize returns the smallest page size of at least n bytes, which is 1 to
// MaxPage: 64 bytes; multiples of 32 up to 256 bytes; then an eighth to a
// quarter more each up to 4 KiB; steps of 1 KiB up to 16, of 2 up to 32 and of
// 4 up to 64 KiB.
func ClassSize(n int) int { return int(classes[classOf(n)]) }
