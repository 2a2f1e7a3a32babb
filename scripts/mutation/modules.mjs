/**
 * Mutated files and the tests that must detect the mutants: fast and broad tests first, because the
 * first failure ends a mutant. `mutate`: Stryker's patterns (a file, or lines of it). `sql`:
 * functions of the database, mutated by sql.mjs.
 */
const platform = (...names) => names.map((name) => `packages/platform/src/${name}.test.ts`)
const signer = (...names) => names.map((name) => `packages/signer/src/${name}.test.ts`)
const functions = (...names) =>
  names.map((name) => `packages/platform/src/core/database/functions/${name}.sql`)

export const MODULES = {
  'request-auth': {
    mutate: ['packages/request-auth/src/**/*.ts', '!packages/request-auth/src/**/*.test.ts'],
    tests: [
      ...[
        'claims',
        'bodies/bodies',
        'rfc7515-rs256',
        'rfc8259-json',
        'public-keys',
        'web-sign',
        'rfc8785-canonical',
        'pinned',
      ].map((name) => `packages/request-auth/src/${name}.test.ts`),
      // The schemas' descriptions are part of the API's document.
      ...platform('core/http/openapi/openapi'),
    ],
  },
  ledger: {
    mutate: ['packages/platform/src/core/ledger/post.ts'],
    sql: functions(
      'ledger_account',
      'ledger_moves',
      'ledger_post',
      'spendable',
      'prepaid_adjust',
      'prepaid_balance',
      'prepaid_charge',
      'prepaid_lock',
      'prepaid_move',
      'prepaid_release',
      'prepaid_reserve',
      'prepaid_tell',
    ),
    tests: platform(
      'core/ledger/ledger',
      'custody/prepaid-fee/prepaid-fee-order',
      'custody/transactions/concurrent-withdrawals',
      'custody/transactions/api-concurrent',
    ),
  },
  idempotency: {
    mutate: [
      'packages/platform/src/core/http/replay.ts',
      'packages/platform/src/core/engine/payload.ts',
      'packages/platform/src/custody/transactions/write-withdrawal.ts',
    ],
    sql: functions(
      'create_withdrawal',
      'create_withdrawals',
      'write_withdrawals',
      'admit_requests',
    ),
    tests: platform(
      'custody/transactions/concurrent-withdrawals',
      'core/http/api-idempotency',
      'core/http/authentication/api-replays',
      'custody/transactions/api-concurrent',
      'custody/transactions/api-transactions',
    ),
  },
  governance: {
    mutate: [
      'packages/policy/src/governance/*.ts',
      '!packages/policy/src/governance/*.test.ts',
      'packages/policy/src/statements/quorum.ts',
    ],
    tests: [
      'governance/governance',
      'governance/documents',
      'governance/effects',
      'governance/statements',
      'governance/vetoed-changes',
      'statements/quorum',
      'statements/verify',
      'governance/governance.property',
    ].map((name) => `packages/policy/src/${name}.test.ts`),
  },
  language: {
    mutate: [
      'packages/policy/src/**/*.ts',
      '!packages/policy/src/**/*.test.ts',
      '!packages/policy/src/governance/*.ts',
      '!packages/policy/src/statements/quorum.ts',
    ],
    tests: [
      'document/read',
      'evaluation/evaluate',
      'evaluation/windows',
      'evaluation/measure',
      'evaluation/approvals',
      'evaluation/explanations',
      'evaluation/sums',
      'statements/verify',
      'statements/verify-messages',
      'statements/carried',
      'statements/operator-input',
      'statements/policy-file',
      'statements/webauthn',
      'analysis/lint',
      'analysis/lint-findings',
      'analysis/diff',
      'analysis/simulate',
      'sentences/sentences',
      'keys',
      'examples',
      'evaluation/evaluate.property',
      'evaluation/pairs.property',
    ].map((name) => `packages/policy/src/${name}.test.ts`),
  },
  exchange: {
    mutate: ['packages/signer/src/governance/*.ts', '!packages/signer/src/governance/*.test.ts'],
    tests: signer(
      'governance/firsts',
      'governance/convergence',
      'governance/exchange',
      'governance/versions',
      'governance/native-verify',
      'governance/restored',
      'governance/resets',
      'governance/enrolments',
      'governance/standing',
      'governance/tank-orders',
      'governance/explorer',
    ),
  },
  limits: {
    mutate: [
      'packages/signer/src/signing/shared-spending.ts',
      'packages/signer/src/policy/budget.ts',
      'packages/signer/src/store/spending.ts',
    ],
    tests: signer(
      'policy/judge',
      'transport/host-clock',
      'signing/shared-spending',
      'policy/rules',
      'policy/authorities/siphon',
      'signing/exact-limits',
    ),
  },
  exclusive: {
    mutate: ['packages/signer/src/policy/exclusivity.ts', 'packages/signer/src/policy/nonce.ts'],
    tests: signer(
      'policy/exclusive',
      'store/written-down',
      'intent/amend',
      'policy/xrp',
      'policy/stellar',
      'policy/cardano',
      'policy/solana',
      'policy/runs',
      'api/voids',
      'signing/attacks',
    ),
  },
  policy: {
    mutate: [
      'packages/signer/src/policy/**/*.ts',
      '!packages/signer/src/policy/**/*.test.ts',
      '!packages/signer/src/policy/exclusivity.ts',
      '!packages/signer/src/policy/nonce.ts',
    ],
    // Only tests whose nodes run in the tests' process, because mutants are not activated in
    // separate node processes.
    tests: signer(
      'policy/order-shape',
      'policy/gate/effects',
      'policy/replaced',
      'policy/rules',
      'policy/governed/acts',
      'policy/governed/stops',
      'policy/governed/own-addresses',
      'policy/governed/judged-acts',
      'policy/governed/windows',
      'policy/governed/window-uses',
      'store/rules-of-the-record',
      'policy/judge',
      'policy/verdicts',
      'store/written-down',
      'policy/refusals',
      'recover/recovery-orders',
      'policy/proofs-and-limits',
      'store/record',
      'policy/exclusive',
      'intent/amend',
      'intent/amend-attacks',
      'policy/solana',
      'policy/cardano',
      'policy/xrp',
      'policy/stellar',
      'policy/authorities/shared-fuel',
      'policy/runs',
      'policy/authorities/siphon',
      'signing/unauthorised-effects',
    ),
  },
}
