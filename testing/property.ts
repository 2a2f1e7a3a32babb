import * as fc from 'fast-check'

// Every test run uses the same examples, so that a failure is reproducible. FUZZ_SEED=N uses
// others. FUZZ_SHRINK=0 reports the first failing example without searching for a smaller one.
fc.configureGlobal({
  seed: Number(process.env['FUZZ_SEED'] ?? 2),
  endOnFailure: process.env['FUZZ_SHRINK'] === '0',
})

/** Part of the examples that are tried: `npm test` tries a quarter, `npm test -- --all` all. */
const SCALE = Number(process.env['FUZZ_SCALE'] ?? 1)
const RUNS = 100

/** As `assert` of fast-check, with the number of examples scaled by FUZZ_SCALE. */
export const assert: typeof fc.assert = ((
  property: fc.IAsyncProperty<unknown>,
  parameters: fc.Parameters<unknown> = {},
) =>
  fc.assert(property, {
    ...parameters,
    numRuns: Math.max(1, Math.round((parameters.numRuns ?? RUNS) * SCALE)),
  })) as typeof fc.assert

export * from 'fast-check'
