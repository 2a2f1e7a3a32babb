import type { Catalogue } from './catalogue/catalogue.ts'
import type { CheckoutState } from '../state.ts'

/** Screen on which an invoice is displayed. */
export type Screen = 'choose' | 'pay' | 'progress' | 'result'
export type Tone = 'ok' | 'info' | 'warn' | 'bad' | 'neutral'
export type Shape =
  | 'waiting'
  | 'half'
  | 'progress'
  | 'check'
  | 'plus'
  | 'clock'
  | 'hourglass'
  | 'octagon'
  | 'slash'
  | 'shield'

/** Label and appearance of a status. Shape and colour each identify it. */
export interface View {
  screen: Screen
  shape: Shape
  tone: Tone
  title: SentenceKey
  detail: SentenceKey
}

type SentenceKey = {
  [Key in keyof Catalogue]: Catalogue[Key] extends string ? Key : never
}[keyof Catalogue]

const VIEWS = {
  choose: {
    screen: 'choose',
    shape: 'waiting',
    tone: 'info',
    title: 'choose',
    detail: 'chooseHint',
  },
  waiting: {
    screen: 'pay',
    shape: 'waiting',
    tone: 'info',
    title: 'waiting',
    detail: 'sendExactly',
  },
  partial: {
    screen: 'pay',
    shape: 'half',
    tone: 'warn',
    title: 'partial',
    detail: 'partialDetail',
  },
  processing: {
    screen: 'progress',
    shape: 'progress',
    tone: 'info',
    title: 'seen',
    detail: 'mayClose',
  },
  checking: {
    screen: 'progress',
    shape: 'shield',
    tone: 'info',
    title: 'checking',
    detail: 'checkingDetail',
  },
  paid: { screen: 'result', shape: 'check', tone: 'ok', title: 'paid', detail: 'paidDetail' },
  over: { screen: 'result', shape: 'plus', tone: 'ok', title: 'over', detail: 'overDetail' },
  late: { screen: 'result', shape: 'clock', tone: 'warn', title: 'late', detail: 'lateDetail' },
  expired: {
    screen: 'result',
    shape: 'hourglass',
    tone: 'neutral',
    title: 'expired',
    detail: 'expiredDetail',
  },
  short: {
    screen: 'result',
    shape: 'hourglass',
    tone: 'warn',
    title: 'expired',
    detail: 'expiredPartialDetail',
  },
  invalid: {
    screen: 'result',
    shape: 'octagon',
    tone: 'bad',
    title: 'invalid',
    detail: 'invalidDetail',
  },
  cancelled: {
    screen: 'result',
    shape: 'slash',
    tone: 'neutral',
    title: 'cancelled',
    detail: 'cancelledDetail',
  },
} as const satisfies Record<string, View>
export type ViewName = keyof typeof VIEWS

/** @param changing the payer wants another asset than the selected one */
export function viewNameOf(state: CheckoutState, changing: boolean): ViewName {
  if (state.cancelled && state.inv_status !== 'Paid') return 'cancelled'
  switch (state.inv_status) {
    case 'Paid':
      return state.exception === 'over' ? 'over' : 'paid'
    case 'Invalid':
      return 'invalid'
    case 'Expired':
      if (state.exception === 'partial') return 'short'
      return state.exception === null ? 'expired' : 'late'
    case 'Processing':
      return state.payments.some(({ status }) => status === 'held') ? 'checking' : 'processing'
    case 'Pending':
      if (state.exception === 'partial' && state.selected) return 'partial'
      return state.selected && !changing ? 'waiting' : 'choose'
  }
}

export const viewOf = (name: ViewName): View => VIEWS[name]
