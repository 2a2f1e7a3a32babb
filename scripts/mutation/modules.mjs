/**
 * Mutated files and the tests that must detect the mutants: fast and broad tests first, because the
 * first failure ends a mutant. `mutate`: Stryker's patterns (a file, or lines of it). `sql`:
 * functions of the database, mutated by sql.mjs.
 */
const platform = (...names) => names.map((name) => `packages/platform/test/${name}.test.ts`)
const signer = (...names) => names.map((name) => `packages/signer/test/${name}.test.ts`)
const functions = (...names) =>
  names.map((name) => `packages/platform/src/core/database/functions/${name}.sql`)

export const MODULES = {
  'request-auth': {
    mutate: ['packages/request-auth/src/**/*.ts'],
    tests: [
      ...[
        'claims',
        'bodies',
        'rfc7515-rs256',
        'rfc8259-json',
        'public-keys',
        'web-sign',
        'rfc8785-canonical',
        'pinned',
      ].map((name) => `packages/request-auth/test/${name}.test.ts`),
      // The schemas' descriptions are part of the API's document.
      ...platform('openapi'),
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
    tests: platform('ledger', 'prepaid-fee-order', 'concurrent-withdrawals', 'api-concurrent'),
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
      'concurrent-withdrawals',
      'api-idempotency',
      'api-replays',
      'api-concurrent',
      'api-transactions',
    ),
  },
  exclusive: {
    mutate: ['packages/signer/src/policy/exclusivity.ts', 'packages/signer/src/policy/nonce.ts'],
    tests: signer(
      'exclusive',
      'written-down',
      'amend',
      'xrp',
      'stellar',
      'cardano',
      'solana',
      'runs',
      'voids',
      'attacks',
    ),
  },
  policy: {
    mutate: [
      'packages/signer/src/policy/**/*.ts',
      '!packages/signer/src/policy/exclusivity.ts',
      '!packages/signer/src/policy/nonce.ts',
    ],
    // Only tests whose nodes run in the tests' process, because mutants are not activated in
    // separate node processes.
    tests: signer(
      'order-shape',
      'rules',
      'rules-of-the-record',
      'judge',
      'verdicts',
      'written-down',
      'refusals',
      'recovery-orders',
      'proofs-and-limits',
      'record',
      'exclusive',
      'amend',
      'amend-attacks',
      'solana',
      'cardano',
      'xrp',
      'stellar',
      'shared-fuel',
      'runs',
      'siphon',
    ),
  },
}
