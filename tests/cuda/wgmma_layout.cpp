/*
 * Compares kernels/cuda/common/wgmma_layout.h with CUTLASS's headers (cute), on the host: where
 * each number of a tile of keys, values and fp8 operands lies, the descriptors, the steps along k,
 * and what registers hold. scripts/check_cuda compiles it by g++ against the headers of the PyPI
 * package nvidia-cutlass. Exits 1 with the number of places that differ.
 */
#include "kernels/cuda/common/wgmma_layout.h"
#include "tests/simt/wgmma_fragments.h"

#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>
#include <cutlass/bfloat16.h>
#include <cutlass/float8.h>

#include <cstdio>

using namespace cute;

namespace
{

constexpr int side = 128; /* rows, and numbers of a head */
int compared;
int different;

void same(const char *what, uint64_t theirs, uint64_t ours)
{
    compared++;
    if (theirs != ours && different++ < 10) {
        printf("%s: CUTLASS %llx, kernels/cuda/common/wgmma_layout.h %llx\n", what,
               (unsigned long long)theirs, (unsigned long long)ours);
    }
}

/* Every element's byte; `ours(row, column)` is of the first of its 16 bytes. */
template <class T, class Layout, class F> void tile(const char *what, Layout layout, F ours)
{
    auto bytes = as_position_independent_swizzle_layout(layout);
    for (int row = 0; row < side; row++) {
        for (int column = 0; column < side; column++) {
            same(what, (uint64_t)bytes(row, column) * sizeof(T), ours(row, column));
        }
    }
}

template <SM90::GMMA::Major major, class Layout> uint64_t descriptor(Layout layout)
{
    using T = cutlass::bfloat16_t;
    auto all = make_tensor(make_smem_ptr(static_cast<T *>(nullptr)), layout);
    auto first = local_tile(all, Shape<Int<side>, _16>{}, make_coord(_0{}, _0{}));
    return SM90::GMMA::make_gmma_desc<major>(first).desc_;
}

void tiles()
{
    using bf16 = cutlass::bfloat16_t;
    using fp8 = cutlass::float_e4m3_t;
    auto values = tile_to_shape(SM90::GMMA::Layout_MN_SW128_Atom<bf16>{},
                                Shape<Int<side>, Int<side>>{}, Step<_2, _1>{});
    auto keys =
        tile_to_shape(SM90::GMMA::Layout_K_SW128_Atom<bf16>{}, Shape<Int<side>, Int<side>>{});
    auto rows =
        tile_to_shape(SM90::GMMA::Layout_K_SW128_Atom<fp8>{}, Shape<Int<side>, Int<side>>{});
    tile<bf16>("values", values, [](int n, int k) {
        return wgmma_tile_place((uint32_t)k, (uint32_t)n / 8) + (uint32_t)n % 8 * 2;
    });
    tile<bf16>("keys", keys, [](int n, int k) {
        return wgmma_tile_place((uint32_t)n, (uint32_t)k / 8) + (uint32_t)k % 8 * 2;
    });
    tile<fp8>("e4m3", rows, [](int n, int k) {
        return wgmma_place((uint32_t)n, (uint32_t)k / 16) + (uint32_t)k % 16;
    });
    for (int step = 0; step < side / 16; step++) {
        same("a step along values", (uint64_t)values.layout_b()(0, 16 * step) * 2,
             wgmma_step_mn_major((uint32_t)step));
        same("a step along keys", (uint64_t)keys.layout_b()(0, 16 * step) * 2,
             wgmma_step_k_major((uint32_t)step));
    }
    /* K-major, the leading stride is not used: CUTLASS writes 1, in units of 16 bytes. */
    same("descriptor of values", descriptor<SM90::GMMA::Major::MN>(values),
         wgmma_descriptor(0, WGMMA_PANEL_BYTES, WGMMA_ROWS_BYTES));
    same("descriptor of keys", descriptor<SM90::GMMA::Major::K>(keys),
         wgmma_descriptor(0, 16, WGMMA_ROWS_BYTES));
}

void registers()
{
    auto sums = SM90::GMMA::CLayout_64x128{};
    auto operand = SM90::GMMA::ALayout_64x16{};
    for (uint32_t thread = 0; thread < 128; thread++) {
        for (uint32_t i = 0; i < 64; i++) {
            same("sums", (uint64_t)sums((int)thread, (int)i),
                 wgmma_sum_row(thread, i) + 64 * wgmma_sum_column(thread, i));
        }
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t column = wgmma_operand_column(thread, i / 2) + i % 2;
            same("operands", (uint64_t)operand((int)thread, (int)i),
                 wgmma_operand_row(thread, i / 2) + 64 * column);
        }
    }
}

} // namespace

int main()
{
    tiles();
    registers();
    printf("%d places of wgmma's tiles and registers compared with CUTLASS, %d differ\n", compared,
           different);
    return different != 0;
}
