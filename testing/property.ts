import * as fc from 'fast-check'

// Every test run uses the same examples, so that a failure is reproducible. FUZZ_SEED=N uses
// others. FUZZ_SHRINK=0 reports the first failing example without searching for a smaller one.
fc.configureGlobal({
  seed: Number(process.env['FUZZ_SEED'] ?? 2),
  endOnFailure: process.env['FUZZ_SHRINK'] === '0',
})

export * from 'fast-check'
