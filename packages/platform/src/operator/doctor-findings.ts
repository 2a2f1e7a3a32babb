import { asInstalled } from '@custody/chains/terminal'

/**
 * What the doctor found at one place. An error is work that has stopped or will stop; a warning is
 * to be dealt with before it is one.
 */
export interface Finding {
  area: 'platform' | 'signers' | 'database' | 'disk' | 'certificates'
  level: 'ok' | 'warning' | 'error'
  message: string
  /** What the operator does about it; null where there is nothing to do. */
  advice: string | null
}

export const ok = (area: Finding['area'], message: string): Finding => ({
  area,
  level: 'ok',
  message,
  advice: null,
})
export const warning = (area: Finding['area'], message: string, advice: string): Finding => ({
  area,
  level: 'warning',
  message,
  advice: asInstalled(advice),
})
export const problem = (area: Finding['area'], message: string, advice: string): Finding => ({
  area,
  level: 'error',
  message,
  advice: asInstalled(advice),
})

const AREA_WIDTH = 13

export const findingLine = ({ area, level, message, advice }: Finding): string =>
  `${area.padEnd(AREA_WIDTH)}${level === 'ok' ? '' : `${level.toUpperCase()}: `}${message}${advice === null ? '' : `; ${advice}`}`
