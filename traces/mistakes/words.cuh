// One warp makes 16 x 8 of D from global memory alone; a word of metadata or scales is made up of smaller ones.
// The last argument says which mistake is made; 0 is none.
typedef unsigned int word;
typedef unsigned short half_word;
typedef unsigned char byte;

// Two f16, four bytes: the registers of a fragment of A (rows g, g + 8; words t, t + 4) or B.
__device__ __forceinline__ word at(const void* matrix, int row, int row_words, int column) {
    return static_cast<const word*>(matrix)[row * row_words + column];
}
