// The build puts these into every file: what it makes of JSX.
export { Fragment, h } from 'preact';
