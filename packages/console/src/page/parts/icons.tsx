/** Line drawings of 20 by 20, each with one or more paths. */
const PATHS = {
  overview: 'M3 10.5 10 4l7 6.5M5 9v7h10V9M8.5 16v-4h3v4',
  wallets:
    'M3 6.5A1.5 1.5 0 0 1 4.500 5H15v3M3 6.5V15a1.500 1.500 0 0 0 1.500 1.500H17V8H4.500A1.500 1.500 0 0 1 3 6.500ZM13.500 12.200h.01',
  transactions: 'M4 7h11m-3-3 3 3-3 3M16 13H5m3-3-3 3 3 3',
  send: 'M4 16 16.500 3.500M8 3.500h8.500V12',
  receive: 'M16 4 4.500 15.500M4.500 8v7.500H12',
  batch: 'M4 5h12M4 10h12M4 15h7M14 13.500l1.500 1.500 2.500-3',
  invoices: 'M5 3h10v14l-2.500-1.500L10 17l-2.500-1.500L5 17zM8 7h4M8 10h4',
  tanks: 'M5 4h7v13H5zM12 8h2a1 1 0 0 1 1 1v5a1.200 1.200 0 0 0 2.400 0V8L15 5.500M5 9h7',
  prepaid: 'M3 6h14v9H3zM3 9h14M6 12.500h3',
  aml: 'M10 3 4 5.500v4.700c0 3.300 2.400 5.700 6 6.800 3.600-1.100 6-3.500 6-6.800V5.500zM7.500 10l1.800 1.800L12.700 8.200',
  staking:
    'M10 3 4 6v3c0 1.500 2.700 2.700 6 2.700S16 10.500 16 9V6zM4 9v4c0 1.500 2.700 2.700 6 2.700s6-1.200 6-2.700V9',
  forward:
    'M3 10h6l4-4h4m-2.500-2.500L17 6l-2.500 2.500M9 10l4 4h4m-2.500-2.500L17 14l-2.500 2.500',
  exchange: 'M4 15V9M8 15V5M12 15v-4M16 15V7M4 7v.01M12 8.500v.01',
  webhooks:
    'M7.500 8.500 10 5a2.500 2.500 0 1 0-2.500 3.500ZM10 5l3.500 6.500M12.500 14.500A2.500 2.500 0 1 0' +
    ' 14 10M5 11a2.500 2.500 0 1 0 2.500 3h5',
  prices: 'M3 15l4-5 3 3 6.500-8M12.500 5h4v4',
  key: 'M11.500 8.500a3.500 3.500 0 1 0-3 3.460L10 13.500h2v2h2V17h3v-3l-5.500-5.500ZM6.800 6.800v.01',
  api: 'M7 6 3 10l4 4M13 6l4 4-4 4M11.2 4.500 8.800 15.500',
  people:
    'M7.500 9a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM3 16c0-2.500 2-4.500 4.500-4.500S12 13.500 12' +
    ' 16M13 4.300a2.500 2.500 0 0 1 0 4.400M14 11.800c1.800.6 3 2.300 3 4.200',
  audit: 'M5 3h7l3 3v11H5zM8 8h4M8 11h4M8 14h2',
  health: 'M3 10h3l2-5 4 10 2-5h3',
  settings:
    'M10 12.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM10 3v2M10 15v2M3 10h2M15 10h2M5 5l1.500' +
    ' 1.500M13.500 13.500 15 15M15 5l-1.500 1.500M6.500 13.500 5 15',
  check: 'M3.500 10.500 8 15 16.500 5.500',
  copy: 'M7 7h9v9H7zM4 13V4h9',
  close: 'M5 5l10 10M15 5 5 15',
  menu: 'M3 5.500h14M3 10h14M3 14.500h14',
  search: 'M9 14A5 5 0 1 0 9 4a5 5 0 0 0 0 10ZM12.700 12.700 17 17',
  plus: 'M10 4v12M4 10h12',
  down: 'M5 8l5 5 5-5',
  right: 'M8 5l5 5-5 5',
  left: 'M12 5 7 10l5 5',
  up: 'M10 16V4m-4 4 4-4 4 4',
  external: 'M8 5H4v11h11v-4M11 3h6v6M17 3l-8 8',
  download: 'M10 3v9m-4-4 4 4 4-4M4 16h12',
  upload: 'M10 12V3m-4 4 4-4 4 4M4 16h12',
  sun:
    'M10 13.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7ZM10 2.500v1.500M10 16v1.500M2.500 10H4' +
    'M16 10h1.500M4.700 4.700l1 1M14.300 14.300l1 1M15.300 4.700l-1 1M5.700 14.300l-1 1',
  moon: 'M16 11.500A6.500 6.500 0 0 1 8.500 4a6.500 6.500 0 1 0 7.500 7.500Z',
  system: 'M3 4h14v9H3zM7 16.500h6M10 13v3.500',
  person: 'M10 9.500a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM4.500 17c0-3 2.500-5 5.500-5s5.500 2 5.500 5',
  out: 'M12 4H4v12h8M9 10h8m-3-3 3 3-3 3',
  help: 'M7.500 7.500A2.500 2.500 0 1 1 10 10.200V12M10 15v.01',
  refresh: 'M16 10a6 6 0 1 1-1.800-4.300M16 3v3.500h-3.500',
  filter: 'M3 5h14M6 10h8M8.500 15h3',
  star: 'm10 3.500 2 4.300 4.500.6-3.300 3.200.8 4.600L10 14l-4 2.200.8-4.600L3.500 8.400 8 7.800z',
} as const

export type IconName = keyof typeof PATHS

/** Icon next to a word; hidden from screen readers. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  )
}

export type Tone = 'ok' | 'info' | 'warn' | 'bad' | 'frozen' | 'neutral'

/** Each tone has its own shape, so that it is recognizable without colour. */
const SHAPES: Record<Tone, string> = {
  ok: 'M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Zm3.200 4.600L7 9.800 4.900 7.700l-1.100 1.100L7 12l5.300-5.300z',
  info: 'M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Zm0 2a5 5 0 0 0 0 10z',
  warn: 'M8 1.200 15.600 14.600H.4ZM7.100 6v4.200h1.800V6Zm0 5.300v1.800h1.800v-1.800Z',
  bad:
    'M5.100 1h5.800L15 5.100v5.800L10.900 15H5.100L1 10.900V5.100Zm.3 3.300L4.300 5.400 6.900 8l-2.600' +
    ' 2.600 1.100 1.100L8 9.100l2.600 2.600 1.100-1.100L9.100 8l2.600-2.600-1.100-1.100L8 6.900Z',
  frozen: 'M8 .8 15.200 8 8 15.200.8 8Zm0 3.400L4.200 8 8 11.800 11.800 8Z',
  neutral:
    'M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Zm0 1.800a5.200 5.200 0 1 0 0 10.400A5.200 5.200 0 0 0 8 2.800Z',
}

export function Shape({ tone }: { tone: Tone }) {
  return (
    <svg class="shape" viewBox="0 0 16 16" aria-hidden="true">
      <path d={SHAPES[tone]} fill-rule="evenodd" />
    </svg>
  )
}
