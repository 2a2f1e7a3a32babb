import * as fc from 'fast-check'

// Every run of the tests looks at the same examples, so that one that fails fails again.
// FUZZ_SEED=N looks at others. FUZZ_SHRINK=0: the first that fails is enough, and no smaller one is
// looked for.
fc.configureGlobal({
  seed: Number(process.env['FUZZ_SEED'] ?? 2),
  endOnFailure: process.env['FUZZ_SHRINK'] === '0',
})

export * from 'fast-check'
