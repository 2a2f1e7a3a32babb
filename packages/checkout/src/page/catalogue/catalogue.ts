/**
 * Every sentence of the page. `{name}` is a placeholder for a value. A language without one of
 * them, or without a plural form that its grammar has (Unicode CLDR), does not compile.
 */
export interface Catalogue<Form extends Intl.LDMLPluralRule = Intl.LDMLPluralRule> {
  payment: string
  payTo: string
  paidTitle: string
  language: string
  details: string
  order: string
  invoice: string
  rate: string

  choose: string
  chooseHint: string
  onNetwork: string
  /** Displayed below the network of an asset whose payments need a destination tag or memo. */
  tagNeeded: string
  change: string
  assetFailed: string

  amountToSend: string
  amountMissing: string
  address: string
  destinationTag: string
  memo: string
  destinationTagWarning: string
  memoWarning: string
  networkWarning: string
  copy: string
  copied: string
  amountCopied: string
  addressCopied: string
  destinationTagCopied: string
  memoCopied: string
  copyFailed: string
  qrShows: string
  paymentLink: string
  addressOnly: string
  qrOfLink: string
  qrOfAddress: string
  openInWallet: string

  minutesLeft: Record<Form, string>
  payBy: string
  lastMinutes: string

  waiting: string
  sendExactly: string
  partial: string
  partialDetail: string
  seen: string
  confirming: string
  confirmations: Record<Form, string>
  mayClose: string
  checking: string
  checkingDetail: string
  paid: string
  paidDetail: string
  over: string
  overDetail: string
  late: string
  lateDetail: string
  expired: string
  expiredDetail: string
  expiredPartialDetail: string
  invalid: string
  invalidDetail: string
  cancelled: string
  cancelledDetail: string

  payments: string
  awaitsBlock: string
  detected: string
  confirmed: string
  held: string
  reverted: string
  dropped: string
  notCounted: string
  viewTransaction: string

  receipt: string
  received: string
  date: string
  paidTo: string
  transaction: string
  print: string

  backTo: string
  returning: Record<Form, string>
  stay: string
  close: string

  reconnecting: string
  loadFailed: string
  loadFailedDetail: string
  tryAgain: string
  missing: string
  missingDetail: string
}
