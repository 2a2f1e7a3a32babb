export { loadSite, NAME } from './site.ts'
