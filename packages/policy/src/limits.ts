/** Bounds of a policy document and of what is exchanged about it. */
export const LIMITS = {
  /** UTF-8 bytes of a document's canonical text, and of the text from which it is read. */
  documentBytes: 262_144,
  rules: 500,
  people: 200,
  keysOfPerson: 10,
  apiKeysOfPerson: 50,
  groups: 50,
  /** Entries of one list in a rule's `match`. */
  matchEntries: 1_000,
  /** Assets of one map of amounts. */
  amounts: 200,
  /** Groups of one list of approvals. */
  approvalGroups: 8,
  /** Sum of `k` of one list of approvals: an order carries at most 8 approvals. */
  approvals: 8,
  windowsOfRule: 4,
  /**
   * Windows of all `limit` rules together. An act is charged to at most 4 + 12 windows. A window of
   * the whole workspace makes two charges, so there are at most 32 charges.
   */
  windowsOfLimits: 12,
  /** Longest window in hours: seven days. */
  windowHours: 168,
  /** Seconds by which a window is extended, because the clocks of two nodes may differ. */
  windowSlackS: 120,
  /** Longest validity of an approval after `at`, in seconds: six days. */
  approvalS: 518_400,
  /** Default validity of an approval after `at`, in seconds: one day. */
  approvalDefaultS: 86_400,
  /** Longest time between `at` and `expires` of a statement, in seconds: seven days. */
  statementS: 604_800,
  /** Seconds by which `at` of a statement may be ahead of the reader's clock. */
  clockSkewS: 60,
  /** UTF-8 bytes of a signed statement as JSON. */
  statementBytes: 8_192,
  /** Time for which a suspension lasts, in seconds: seven days. */
  suspensionS: 604_800,
  /** Sub-accounts that can be stopped at a time. */
  stops: 1_000,
  /** Successors of one document that a person can veto before they are pending at a holder. */
  earlyVetoes: 100,
  /**
   * Vetoed successors of one document after which the people who have approved them wait before they
   * propose the next one: for the delay of the document, twice as long after each further one.
   */
  vetoedChanges: 3,
  /** Nodes whose operators must confirm a change that a person whom it removes has vetoed. */
  confirmations: 2,
  /**
   * Seconds by which a proposal may be seen too late for its delay, because its approvals travel.
   */
  sightSlackS: 300,
  /** Longest delay of a change, in seconds: 30 days. */
  delayS: 2_592_000,
  /** Shortest delay of a change outside of mode `local`, in seconds: one hour. */
  delayMinS: 3_600,
} as const
